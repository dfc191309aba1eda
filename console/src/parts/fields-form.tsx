// A form for several questions: one field each, sent together.
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { t } from '../language/language.js';
import type { Json, JsonObject } from '../../../src/kernel/json.js';
import { keep, recall } from '../state/drafts.js';
import { nameInProse, nameInvisible } from '../../../src/kernel/visible-text.js';
import { OptionLabel } from './option-label.js';

interface Field {
  readonly id: string;
  readonly kind: string;
  readonly prompt: string;
  readonly options: readonly { readonly label: string; readonly value: Json; readonly description?: string }[];
  readonly default?: Json;
}

interface FormProps {
  // Drafts are stored under this ID.
  readonly id: string;
  readonly fields: readonly JsonObject[];
  // The schema of the answer, if the engine has one. The form can then also be declined.
  readonly schema?: JsonObject | undefined;
  readonly onAnswer: (response: Json) => void;
}

// Chosen options, and texts written instead of them.
interface Filled {
  readonly chosen: Readonly<Record<string, Json>>;
  readonly words: Readonly<Record<string, string>>;
}

export function FieldsForm({ id: formId, fields: input, schema, onAnswer }: FormProps): JSX.Element {
  const fields = input as unknown as readonly Field[];
  const { numbers, required } = rulesOf(schema);
  const [filled, setFilled] = useState<Filled>(() => recall(`${formId}/fields`, initialValues(fields)));
  const change = (next: Filled): void => {
    keep(`${formId}/fields`, next);
    setFilled(next);
  };
  const choose = (id: string, value: Json): void =>
    change({ chosen: { ...filled.chosen, [id]: value }, words: { ...filled.words, [id]: '' } });
  const write = (id: string, text: string): void =>
    change({ chosen: without(filled.chosen, id), words: { ...filled.words, [id]: text } });
  const send = (event: Event): void => {
    event.preventDefault();
    // An emptied field counts as left out.
    const written = Object.entries(filled.words)
      .filter(([, text]) => text !== '')
      .map(([id, text]) => [id, numbers.has(id) && Number.isFinite(Number(text)) ? Number(text) : text]);
    onAnswer({ ...filled.chosen, ...Object.fromEntries(written) });
  };
  return (
    <form class="fields" onSubmit={send}>
      {fields.map((field) => (
        <FieldInput
          key={field.id}
          field={field}
          isRequired={required.has(field.id)}
          chosen={filled.chosen[field.id]}
          words={filled.words[field.id] ?? ''}
          onChoose={(value) => choose(field.id, value)}
          onWrite={(text) => write(field.id, text)}
        />
      ))}
      <div class="options">
        <button type="submit" class="primary">
          {t.question.send}
        </button>
        {schema && (
          <button type="button" onClick={() => onAnswer({ decision: 'decline' })}>
            {t.approval.decline}
          </button>
        )}
        {schema && (
          <button type="button" onClick={() => onAnswer({ decision: 'cancel' })}>
            {t.approval.declineAndStop}
          </button>
        )}
      </div>
    </form>
  );
}

// Starts with the defaults: a default that is an option is chosen, any other text is filled in.
function initialValues(fields: readonly Field[]): Filled {
  const chosen: Record<string, Json> = {};
  const words: Record<string, string> = {};
  for (const { id, kind, options, default: value } of fields) {
    if (typeof value === 'string' && kind !== 'confirm' && !options.some((option) => option.value === value))
      words[id] = value;
    else if (value !== undefined) chosen[id] = value;
    else if (kind === 'confirm') chosen[id] = false;
  }
  return { chosen, words };
}

function without(record: Readonly<Record<string, Json>>, id: string): Readonly<Record<string, Json>> {
  return Object.fromEntries(Object.entries(record).filter(([name]) => name !== id));
}

interface InputProps {
  readonly field: Field;
  readonly isRequired: boolean;
  readonly chosen: Json | undefined;
  readonly words: string;
  readonly onChoose: (value: Json) => void;
  readonly onWrite: (text: string) => void;
}

function FieldInput({
  field: { id, kind, prompt, options },
  isRequired,
  chosen,
  words,
  onChoose,
  onWrite,
}: InputProps): JSX.Element {
  if (kind === 'confirm') {
    const isChecked = chosen === true;
    return (
      <label class="check">
        <input type="checkbox" checked={isChecked} onChange={(event) => onChoose(event.currentTarget.checked)} />{' '}
        {nameInProse(prompt)}
      </label>
    );
  }
  return (
    <fieldset>
      <legend>{nameInProse(prompt)}</legend>
      {options.map((option, index) => (
        <label key={index} class="check">
          <input
            type="radio"
            name={id}
            checked={chosen !== undefined && JSON.stringify(chosen) === JSON.stringify(option.value)}
            onChange={() => onChoose(option.value)}
          />{' '}
          <OptionLabel text={option.label} />
          {option.description && <small> {nameInvisible(option.description)}</small>}
        </label>
      ))}
      <input
        type="text"
        required={isRequired && chosen === undefined && words === ''}
        aria-label={options.length > 0 ? t.question.ownWordsFor(prompt) : prompt}
        placeholder={options.length > 0 ? t.question.ownWords : ''}
        value={words}
        onInput={(event) => onWrite(event.currentTarget.value)}
      />
    </fieldset>
  );
}

// Which fields are required, and which texts are sent as numbers. The form is the schema itself or one of its `anyOf`.
function rulesOf(schema: JsonObject | undefined): {
  readonly numbers: ReadonlySet<string>;
  readonly required: ReadonlySet<string>;
} {
  const forms = [schema, ...(Array.isArray(schema?.['anyOf']) ? (schema['anyOf'] as JsonObject[]) : [])].filter(
    (form) => form !== undefined,
  );
  const fields = forms.flatMap(({ properties }) => Object.entries((properties ?? {}) as Record<string, JsonObject>));
  return {
    numbers: new Set(fields.filter(([, { type }]) => type === 'number' || type === 'integer').map(([id]) => id)),
    required: new Set(forms.flatMap(({ required }) => (Array.isArray(required) ? (required as string[]) : []))),
  };
}

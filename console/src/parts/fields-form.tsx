// Several questions at once: a field for each, sent together.
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { Json, JsonObject } from '../../../src/kernel/json.js';
import { nameTurns } from '../state/visible.js';

interface Field {
  readonly id: string;
  readonly kind: string;
  readonly prompt: string;
  readonly options: readonly { readonly label: string; readonly value: Json }[];
  readonly default?: Json;
}

interface FormProps {
  readonly fields: readonly JsonObject[];
  // What the answer must fit, where the engine says so; it then takes a refusal, too.
  readonly schema?: JsonObject | undefined;
  readonly onAnswer: (response: Json) => void;
}

export function FieldsForm({ fields: given, schema, onAnswer }: FormProps): JSX.Element {
  const fields = given as unknown as readonly Field[];
  const { numbers, required } = wantsOf(schema);
  const [values, setValues] = useState<Readonly<Record<string, Json>>>(() => Object.fromEntries(fields.flatMap(({ id, kind, default: value }) => (value !== undefined ? [[id, value]] : kind === 'confirm' ? [[id, false]] : []))));
  const set = (id: string, value: Json): void => setValues((before) => ({ ...before, [id]: value }));
  const send = (event: Event): void => {
    event.preventDefault();
    // A field that was emptied again is one that was left out.
    onAnswer(Object.fromEntries(Object.entries(values).filter(([, value]) => value !== '').map(([id, value]) => [id, numbers.has(id) && Number.isFinite(Number(value)) ? Number(value) : value])));
  };
  return (
    <form class="fields" onSubmit={send}>
      {fields.map((field) => <FieldInput key={field.id} field={field} isRequired={required.has(field.id)} value={values[field.id]} onChange={(value) => set(field.id, value)} />)}
      <div class="options">
        <button type="submit" class="primary">Send</button>
        {schema && <button type="button" onClick={() => onAnswer({ decision: 'decline' })}>Decline</button>}
        {schema && <button type="button" onClick={() => onAnswer({ decision: 'cancel' })}>Decline and stop</button>}
      </div>
    </form>
  );
}

interface InputProps {
  readonly field: Field;
  readonly isRequired: boolean;
  readonly value: Json | undefined;
  readonly onChange: (value: Json) => void;
}

function FieldInput({ field: { id, kind, prompt, options }, isRequired, value, onChange }: InputProps): JSX.Element {
  if (kind === 'confirm') return <label class="check"><input type="checkbox" checked={value === true} onChange={(event) => onChange(event.currentTarget.checked)} /> {nameTurns(prompt)}</label>;
  return (
    <fieldset>
      <legend>{nameTurns(prompt)}</legend>
      {options.map((option, index) => (
        <label key={index} class="check"><input type="radio" name={id} checked={JSON.stringify(value) === JSON.stringify(option.value)} onChange={() => onChange(option.value)} /> {nameTurns(option.label)}</label>
      ))}
      <input
        type="text"
        required={isRequired && (value === undefined || value === '')}
        aria-label={options.length > 0 ? `${prompt}: in your own words` : prompt}
        placeholder={options.length > 0 ? 'Or in your own words…' : ''}
        value={typeof value === 'string' && !options.some((option) => option.value === value) ? value : ''}
        onInput={(event) => onChange(event.currentTarget.value)}
      />
    </fieldset>
  );
}

// Which fields must be there, and whose text is to be sent as a number: the form is the schema, or one of those that it names.
function wantsOf(schema: JsonObject | undefined): { readonly numbers: ReadonlySet<string>; readonly required: ReadonlySet<string> } {
  const forms = [schema, ...(Array.isArray(schema?.['anyOf']) ? (schema['anyOf'] as JsonObject[]) : [])].filter((form) => form !== undefined);
  const fields = forms.flatMap(({ properties }) => Object.entries((properties ?? {}) as Record<string, JsonObject>));
  return {
    numbers: new Set(fields.filter(([, { type }]) => type === 'number' || type === 'integer').map(([id]) => id)),
    required: new Set(forms.flatMap(({ required }) => (Array.isArray(required) ? (required as string[]) : []))),
  };
}

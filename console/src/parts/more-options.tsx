// What most runs do without: the model, labels, and how long things may take.
import type { JSX } from 'preact';
import { NUMBERS, type Draft, type Problems } from '../state/new-run.js';
import { Field } from './field.js';

const NUMBER_FIELDS: Readonly<
  Record<(typeof NUMBERS)[number], readonly [label: string, standard: string, hint: string]>
> = {
  session_timeout_sec: [
    'A question is overdue after (seconds)',
    '1200',
    'It still waits and can be answered, unless the box below is off.',
  ],
  turn_timeout_sec: [
    'Longest turn (seconds)',
    'no limit',
    'A turn that takes longer is ended. Waiting for you does not count.',
  ],
  idle_timeout_sec: [
    'Longest silence in a turn (seconds)',
    '1800',
    'A turn that prints nothing for so long is ended. A running tool call does not count.',
  ],
  tool_timeout_sec: [
    'Longest silent tool call (seconds)',
    '14400',
    'A turn whose tool prints nothing for so long is ended.',
  ],
  max_attempt: ['Most turns', '100', 'After so many questions and answers the run ends.'],
};

interface MoreProps {
  readonly draft: Draft;
  readonly problems: Problems;
  readonly onChange: (changes: Partial<Draft>) => void;
}

export function MoreOptions({ draft, problems, onChange }: MoreProps): JSX.Element {
  return (
    <div class="more-options">
      <Field
        name="model"
        label="Model"
        hint="As the engine calls it; empty: the engine's own choice."
        problem={problems.model}
      >
        {(ties) => (
          <input
            {...ties}
            type="text"
            value={draft.model}
            spellcheck={false}
            autocomplete="off"
            maxLength={200}
            onInput={(event) => onChange({ model: event.currentTarget.value })}
          />
        )}
      </Field>
      <Field name="labels" label="Labels" hint="One name=value a line, to find it again." problem={problems.labels}>
        {(ties) => (
          <textarea
            {...ties}
            rows={2}
            value={draft.labels}
            placeholder="team=web"
            spellcheck={false}
            onInput={(event) => onChange({ labels: event.currentTarget.value })}
          />
        )}
      </Field>
      {NUMBERS.map((name) => {
        const [label, standard, hint] = NUMBER_FIELDS[name];
        return (
          <Field key={name} name={name} label={label} hint={hint} problem={problems[name]}>
            {(ties) => (
              <input
                {...ties}
                type="text"
                inputMode="numeric"
                autocomplete="off"
                value={draft[name]}
                placeholder={standard}
                onInput={(event) => onChange({ [name]: event.currentTarget.value })}
              />
            )}
          </Field>
        );
      })}
      <div class="field">
        <label class="check">
          <input
            type="checkbox"
            checked={draft.requireReply}
            onChange={(event) => onChange({ requireReply: event.currentTarget.checked })}
          />{' '}
          Only a person answers its questions
        </label>
        {!draft.requireReply && (
          <label>
            When a question is overdue
            <select
              value={draft.policy}
              onChange={(event) => onChange({ policy: event.currentTarget.value as Draft['policy'] })}
            >
              <option value="engine_judgement">the agent decides itself</option>
              <option value="use_default">its own default is taken</option>
            </select>
          </label>
        )}
      </div>
    </div>
  );
}

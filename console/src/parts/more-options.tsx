// Options that most runs do not need: the model, labels and time limits.
import type { JSX } from 'preact';
import { t } from '../language/language.js';
import type { NewRunDefaults } from '../state/engines.js';
import { NUMBERS, type Draft, type Problems } from '../state/new-run.js';
import { Field } from './field.js';

interface MoreProps {
  readonly draft: Draft;
  // Shown in empty fields; null: not loaded yet.
  readonly defaults: NewRunDefaults | null;
  readonly problems: Problems;
  readonly onChange: (changes: Partial<Draft>) => void;
}

export function MoreOptions({ draft, defaults, problems, onChange }: MoreProps): JSX.Element {
  return (
    <div class="more-options">
      <Field name="model" label={t.newRun.model} hint={t.newRun.modelHelp} problem={problems.model}>
        {(ties) => (
          <input
            {...ties}
            type="text"
            value={draft.model}
            placeholder={defaults?.model[draft.engine] ?? ''}
            spellcheck={false}
            autocomplete="off"
            maxLength={200}
            onInput={(event) => onChange({ model: event.currentTarget.value })}
          />
        )}
      </Field>
      <Field name="labels" label={t.newRun.labels} hint={t.newRun.labelsHelp} problem={problems.labels}>
        {(ties) => (
          <textarea
            {...ties}
            rows={2}
            value={draft.labels}
            placeholder={t.newRun.labelsExample}
            spellcheck={false}
            onInput={(event) => onChange({ labels: event.currentTarget.value })}
          />
        )}
      </Field>
      {NUMBERS.map((name) => {
        const { label, standard, help } = t.newRun.limits[name];
        return (
          <Field key={name} name={name} label={label} hint={help} problem={problems[name]}>
            {(ties) => (
              <input
                {...ties}
                type="text"
                inputMode="numeric"
                autocomplete="off"
                value={draft[name]}
                placeholder={defaultLimit(defaults, name) ?? standard}
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
          {t.newRun.requireReply}
        </label>
        {!draft.requireReply && (
          <label>
            {t.newRun.whenOverdue}
            <select
              value={draft.policy}
              onChange={(event) => onChange({ policy: event.currentTarget.value as Draft['policy'] })}
            >
              <option value="engine_judgement">{t.newRun.policies.engine_judgement}</option>
              <option value="use_default">{t.newRun.policies.use_default}</option>
            </select>
          </label>
        )}
      </div>
    </div>
  );
}

// A limit that the settings of the server change; null: the usual one applies.
function defaultLimit(defaults: NewRunDefaults | null, name: (typeof NUMBERS)[number]): string | null {
  if (name === 'session_timeout_sec' || name === 'max_attempt') return null;
  return defaults?.[name]?.toString() ?? null;
}

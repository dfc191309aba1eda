// The form that starts a run: engine, prompt, folder and permissions. Pressing Start repeatedly starts one run.
import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { t } from '../language/language.js';
import { defaultEngine, EngineChoice, hasOnlyRehearsal } from '../parts/engine-choice.js';
import { Field } from '../parts/field.js';
import { Link } from '../parts/link.js';
import { MoreOptions } from '../parts/more-options.js';
import { drop, keep, recall } from '../state/drafts.js';
import { loadEngines, REHEARSAL, type EngineReport, type NewRunDefaults } from '../state/engines.js';
import { persist } from '../state/persist.js';
import {
  buildRequest,
  NUMBERS,
  problemsOf,
  recallDraft,
  rememberDraft,
  RequestKeys,
  withDefaults,
  type ChosenDraft,
  type Draft,
  type Field as FieldName,
  type Problems,
} from '../state/new-run.js';
import { go } from '../state/router.js';
import { client, mayOperate, me, messageOf } from '../state/server.js';
import './new-run.css';

// The draft is kept until the run is started.
const DRAFT = 'new-run';

export function NewRunPage(): JSX.Element {
  if (me.value === null)
    return (
      <p class="empty dim" role="status">
        {t.newRun.connecting}
      </p>
    );
  return mayOperate() ? <NewRunForm /> : <NotAllowed mayAnswer={me.value.role === 'replier'} />;
}

function NotAllowed({ mayAnswer }: { readonly mayAnswer: boolean }): JSX.Element {
  return (
    <div class="empty">
      <h1>{t.pages.new}</h1>
      <p>{mayAnswer ? t.newRun.replierOnly : t.newRun.viewerOnly}</p>
      <p>
        <Link to="/runs">{t.frame.toRuns}</Link>
      </p>
    </div>
  );
}

function NewRunForm(): JSX.Element {
  const [last] = useState(recallDraft);
  const [draft, setDraft] = useState(() => recall(DRAFT, last));
  const [engines, setEngines] = useState<readonly EngineReport[] | null>(null);
  const [defaults, setDefaults] = useState<NewRunDefaults | null>(null);
  const [problems, setProblems] = useState<Problems>({});
  const [isMoreOpen, setMoreOpen] = useState(false);
  const { isStarting, start } = useStart(setProblems);
  const form = useRef<HTMLFormElement>(null);
  const set = (changes: Partial<Draft>): void => setDraft((before) => ({ ...before, ...changes }));
  useEffect(() => {
    const leave = new AbortController();
    persist(loadEngines, leave.signal).then(
      (list) => {
        if (list === null) return;
        setEngines(list.engines);
        setDefaults(list.defaults);
        setDraft((before) => ({ ...before, engine: defaultEngine(list.engines, before.engine) }));
      },
      (error: unknown) => setProblems({ '': t.newRun.enginesFailed(messageOf(error)) }),
    );
    return () => leave.abort();
  }, []);
  useEffect(() => keep(DRAFT, draft), [draft]);
  useEffect(() => {
    const names = Object.keys(problems) as (FieldName | '')[];
    if (names.some((name) => name !== '' && FOLDED.has(name))) setMoreOpen(true);
    // Moves the focus to the first field with a problem.
    const first = names.find((name) => name !== '');
    if (first !== undefined)
      requestAnimationFrame(() =>
        form.current?.querySelector<HTMLElement>(`#field-${first} input, #field-${first}`)?.focus(),
      );
  }, [problems]);
  const submit = (event: Event): void => {
    event.preventDefault();
    start(chosen);
  };
  const keys = (event: KeyboardEvent): void => {
    if (event.key === 'Enter' && (event.metaKey || event.ctrlKey)) submit(event);
  };
  const useExample = (): void => {
    set({ engine: REHEARSAL, prompt: t.newRun.example, mode: 'interactive', cwd: '' });
    form.current?.querySelector<HTMLElement>('#field-prompt')?.focus();
  };
  const chosen = withDefaults(draft, defaults);
  const onlyRehearsal = engines !== null && hasOnlyRehearsal(engines);
  return (
    <form ref={form} class="new-run" aria-label={t.pages.new} onSubmit={submit} onKeyDown={keys} noValidate>
      <h1>{t.pages.new}</h1>
      {onlyRehearsal && (
        <section class="offer" aria-label={t.newRun.rehearsal}>
          <p>
            <strong>{t.newRun.noAgent}</strong> {t.newRun.noAgentHelp}
          </p>
          <button type="button" class="primary" onClick={useExample}>
            {t.newRun.fillExample}
          </button>
        </section>
      )}
      {engines === null ? (
        <p class="dim" role="status">
          {t.newRun.loadingEngines}
        </p>
      ) : (
        <EngineChoice
          engines={engines}
          chosen={draft.engine}
          problem={problems.engine}
          onChoose={(engine) => set({ engine })}
        />
      )}
      <Field name="prompt" label={t.newRun.prompt} problem={problems.prompt}>
        {(ties) => (
          <textarea
            {...ties}
            rows={6}
            value={draft.prompt}
            required
            autofocus
            onInput={(event) => set({ prompt: event.currentTarget.value })}
          />
        )}
      </Field>
      {!onlyRehearsal && draft.engine === REHEARSAL && draft.prompt === '' && (
        <p class="example">
          <button type="button" class="quiet" onClick={useExample}>
            {t.newRun.useExample}
          </button>
        </p>
      )}
      <Field
        name="cwd"
        label={t.newRun.folder}
        hint={t.newRun.folderHelp(draft.cwd !== '' && draft.cwd === last.cwd)}
        problem={problems.cwd}
      >
        {(ties) => (
          <input
            {...ties}
            type="text"
            value={draft.cwd}
            placeholder={t.newRun.folderExample}
            spellcheck={false}
            autocomplete="off"
            onInput={(event) => set({ cwd: event.currentTarget.value })}
          />
        )}
      </Field>
      <div class="pair">
        <Choices
          name="mode"
          legend={t.newRun.mode}
          choices={t.modes}
          chosen={chosen.mode}
          problem={problems.mode}
          onChoose={(mode) => set({ mode })}
        />
        <Choices
          name="permission"
          legend={t.newRun.permission}
          choices={t.permissions}
          chosen={chosen.permission}
          problem={problems.permission}
          onChoose={(permission) => set({ permission })}
        />
      </div>
      <details open={isMoreOpen} onToggle={(event) => setMoreOpen(event.currentTarget.open)}>
        <summary>{t.newRun.more}</summary>
        <MoreOptions draft={draft} defaults={defaults} problems={problems} onChange={set} />
      </details>
      <div class="start">
        <button type="submit" class="primary" disabled={isStarting || engines === null}>
          {isStarting ? t.newRun.starting : t.newRun.start} <kbd>Ctrl ⏎</kbd>
        </button>
        <p class="bad" role="alert">
          {problems['']}
        </p>
      </div>
    </form>
  );
}

// The fields below "More options".
const FOLDED: ReadonlySet<FieldName> = new Set(['model', 'labels', 'requireReply', 'policy', ...NUMBERS]);

// Starts one run at a time. Sending the same request again returns the same run.
function useStart(report: (problems: Problems) => void): {
  readonly isStarting: boolean;
  readonly start: (draft: ChosenDraft) => void;
} {
  const [isStarting, setStarting] = useState(false);
  const isBusy = useRef(false);
  const isMounted = useRef(true);
  const keys = useRef(new RequestKeys());
  useEffect(() => () => void (isMounted.current = false), []);
  const start = (draft: ChosenDraft): void => {
    if (isBusy.current) return;
    const built = buildRequest(draft);
    if ('problems' in built) return report(built.problems);
    report({});
    isBusy.current = true;
    setStarting(true);
    client
      .create({ ...built.request, request_id: keys.current.for(built.request) })
      .then(
        (run) => {
          rememberDraft(draft);
          drop(DRAFT);
          if (isMounted.current) go(`/runs/${run.run_id}`);
        },
        (error: unknown) => report(problemsOf(error)),
      )
      .finally(() => {
        isBusy.current = false;
        setStarting(false);
      });
  };
  return { isStarting, start };
}

interface ChoicesProps<V extends string> {
  readonly name: string;
  readonly legend: string;
  readonly choices: Readonly<Record<V, { readonly name: string; readonly meaning: string }>>;
  readonly chosen: V;
  readonly problem: string | undefined;
  readonly onChoose: (value: V) => void;
}

function Choices<V extends string>({ name, legend, choices, chosen, problem, onChoose }: ChoicesProps<V>): JSX.Element {
  return (
    <fieldset class="choices" id={`field-${name}`}>
      <legend>{legend}</legend>
      {(Object.keys(choices) as V[]).map((value) => (
        <label key={value} class="choice">
          <input type="radio" name={name} value={value} checked={chosen === value} onChange={() => onChoose(value)} />
          <span class="name">{choices[value].name}</span>
          <small class="dim">{choices[value].meaning}</small>
        </label>
      ))}
      {problem !== undefined && <p class="bad">{problem}</p>}
    </fieldset>
  );
}

// Starts a run: who shall do it, what, where, and how far it may go. However often it is pressed, it starts one.
import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { defaultEngine, EngineChoice, hasOnlyRehearsal } from '../parts/engine-choice.js';
import { Field } from '../parts/field.js';
import { Link } from '../parts/link.js';
import { MoreOptions } from '../parts/more-options.js';
import { drop, keep, recall } from '../state/drafts.js';
import { loadEngines, REHEARSAL, type EngineReport } from '../state/engines.js';
import { persist } from '../state/persist.js';
import {
  buildRequest,
  NUMBERS,
  problemsOf,
  recallDraft,
  rememberDraft,
  RequestKeys,
  type Draft,
  type Field as FieldName,
  type Problems,
} from '../state/new-run.js';
import { go } from '../state/router.js';
import { client, mayOperate, me, messageOf } from '../state/server.js';
import './new-run.css';

const EXAMPLE =
  'Set up the storage. [[tool ls -la]] [[ask Which database should it be? | Postgres | SQLite]] [[done "the ' +
  'storage is set up"]]';

const MODES = [
  ['interactive', 'Interactive', 'It may ask you, and waits for as long as you need.'],
  ['auto', 'Auto', 'It must do without a person: nothing is asked.'],
] as const;
const PERMISSIONS = [
  ['read-only', 'Read only', 'It looks at the folder and changes nothing.'],
  ['workspace-write', 'Write in the folder', 'It changes files in its folder and runs commands there.'],
  ['full', 'Full', 'It may do whatever you may, on the whole machine.'],
] as const;

// What is written in the form stays there until it is started.
const DRAFT = 'new-run';

export function NewRunPage(): JSX.Element {
  if (me.value === null)
    return (
      <p class="empty dim" role="status">
        Connecting…
      </p>
    );
  return mayOperate() ? <NewRunForm /> : <NotAllowed mayAnswer={me.value.role === 'replier'} />;
}

function NotAllowed({ mayAnswer }: { readonly mayAnswer: boolean }): JSX.Element {
  return (
    <div class="empty">
      <h1>New run</h1>
      <p>You may look{mayAnswer ? ' and answer' : ''}, but not start runs: that takes the token of an operator.</p>
      <p>
        <Link to="/runs">To the runs</Link>
      </p>
    </div>
  );
}

function NewRunForm(): JSX.Element {
  const [last] = useState(recallDraft);
  const [draft, setDraft] = useState(() => recall(DRAFT, last));
  const [engines, setEngines] = useState<readonly EngineReport[] | null>(null);
  const [problems, setProblems] = useState<Problems>({});
  const [isMoreOpen, setMoreOpen] = useState(false);
  const { isStarting, start } = useStart(setProblems);
  const form = useRef<HTMLFormElement>(null);
  const set = (changes: Partial<Draft>): void => setDraft((before) => ({ ...before, ...changes }));
  useEffect(() => {
    const leave = new AbortController();
    persist(loadEngines, leave.signal).then(
      (all) => {
        if (all === null) return;
        setEngines(all);
        setDraft((before) => ({ ...before, engine: defaultEngine(all, before.engine) }));
      },
      (error: unknown) => setProblems({ '': `The engines could not be listed: ${messageOf(error)}` }),
    );
    return () => leave.abort();
  }, []);
  useEffect(() => keep(DRAFT, draft), [draft]);
  useEffect(() => {
    const names = Object.keys(problems) as (FieldName | '')[];
    if (names.some((name) => name !== '' && FOLDED.has(name))) setMoreOpen(true);
    // Where to mend it.
    const first = names.find((name) => name !== '');
    if (first !== undefined)
      requestAnimationFrame(() =>
        form.current?.querySelector<HTMLElement>(`#field-${first} input, #field-${first}`)?.focus(),
      );
  }, [problems]);
  const submit = (event: Event): void => {
    event.preventDefault();
    start(draft);
  };
  const keys = (event: KeyboardEvent): void => {
    if (event.key === 'Enter' && (event.metaKey || event.ctrlKey)) submit(event);
  };
  const useExample = (): void => {
    set({ engine: REHEARSAL, prompt: EXAMPLE, mode: 'interactive', cwd: '' });
    form.current?.querySelector<HTMLElement>('#field-prompt')?.focus();
  };
  const onlyRehearsal = engines !== null && hasOnlyRehearsal(engines);
  return (
    <form ref={form} class="new-run" aria-label="New run" onSubmit={submit} onKeyDown={keys} noValidate>
      <h1>New run</h1>
      {onlyRehearsal && (
        <section class="offer" aria-label="Rehearsal">
          <p>
            <strong>No agent is installed here yet.</strong> The rehearsal plays one: it asks, waits for your answer and
            goes on, and executes nothing.
          </p>
          <button type="button" class="primary" onClick={useExample}>
            Fill in an example
          </button>
        </section>
      )}
      {engines === null ? (
        <p class="dim" role="status">
          Looking for engines…
        </p>
      ) : (
        <EngineChoice
          engines={engines}
          chosen={draft.engine}
          problem={problems.engine}
          onChoose={(engine) => set({ engine })}
        />
      )}
      <Field name="prompt" label="What shall it do?" problem={problems.prompt}>
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
            Use an example that asks something
          </button>
        </p>
      )}
      <Field
        name="cwd"
        label="Folder (optional)"
        hint={
          (draft.cwd !== '' && draft.cwd === last.cwd ? 'As last time. ' : '') +
          "An absolute path on the server's machine. Without one, the run gets a fresh, empty folder."
        }
        problem={problems.cwd}
      >
        {(ties) => (
          <input
            {...ties}
            type="text"
            value={draft.cwd}
            placeholder="/home/me/project"
            spellcheck={false}
            autocomplete="off"
            onInput={(event) => set({ cwd: event.currentTarget.value })}
          />
        )}
      </Field>
      <div class="pair">
        <Choices
          name="mode"
          legend="Mode"
          choices={MODES}
          chosen={draft.mode}
          problem={problems.mode}
          onChoose={(mode) => set({ mode })}
        />
        <Choices
          name="permission"
          legend="Permission"
          choices={PERMISSIONS}
          chosen={draft.permission}
          problem={problems.permission}
          onChoose={(permission) => set({ permission })}
        />
      </div>
      <details open={isMoreOpen} onToggle={(event) => setMoreOpen(event.currentTarget.open)}>
        <summary>More</summary>
        <MoreOptions draft={draft} problems={problems} onChange={set} />
      </details>
      <div class="start">
        <button type="submit" class="primary" disabled={isStarting || engines === null}>
          {isStarting ? 'Starting…' : 'Start'} <kbd>Ctrl ⏎</kbd>
        </button>
        <p class="bad" role="alert">
          {problems['']}
        </p>
      </div>
    </form>
  );
}

const FOLDED: ReadonlySet<FieldName> = new Set(['model', 'labels', 'requireReply', 'policy', ...NUMBERS]);

// One at a time; what was sent before and is sent again is the same run.
function useStart(tell: (problems: Problems) => void): {
  readonly isStarting: boolean;
  readonly start: (draft: Draft) => void;
} {
  const [isStarting, setStarting] = useState(false);
  const isBusy = useRef(false);
  const isHere = useRef(true);
  const keys = useRef(new RequestKeys());
  useEffect(() => () => void (isHere.current = false), []);
  const start = (draft: Draft): void => {
    if (isBusy.current) return;
    const built = buildRequest(draft);
    if ('problems' in built) return tell(built.problems);
    tell({});
    isBusy.current = true;
    setStarting(true);
    client
      .create({ ...built.request, request_id: keys.current.for(built.request) })
      .then(
        (run) => {
          rememberDraft(draft);
          drop(DRAFT);
          if (isHere.current) go(`/runs/${run.run_id}`);
        },
        (error: unknown) => tell(problemsOf(error)),
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
  readonly choices: readonly (readonly [value: V, label: string, meaning: string])[];
  readonly chosen: V;
  readonly problem: string | undefined;
  readonly onChoose: (value: V) => void;
}

function Choices<V extends string>({ name, legend, choices, chosen, problem, onChoose }: ChoicesProps<V>): JSX.Element {
  return (
    <fieldset class="choices" id={`field-${name}`}>
      <legend>{legend}</legend>
      {choices.map(([value, label, meaning]) => (
        <label key={value} class="choice">
          <input type="radio" name={name} value={value} checked={chosen === value} onChange={() => onChoose(value)} />
          <span class="name">{label}</span>
          <small class="dim">{meaning}</small>
        </label>
      ))}
      {problem !== undefined && <p class="bad">{problem}</p>}
    </fieldset>
  );
}

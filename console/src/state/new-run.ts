// The form of a new run: its values, the request built from them, and the values remembered for the next run.
import { t } from '../language/language.js';
import { ParleyError, type CreateRunRequest, type NewRunDefaults } from '../../../src/client/index.js';
import type { JsonObject } from '../../../src/kernel/json.js';
import { messageOf } from './server.js';

export interface Draft {
  readonly engine: string;
  readonly prompt: string;
  readonly cwd: string;
  // null: not chosen, so the default of the server applies (`withDefaults`).
  readonly mode: NonNullable<CreateRunRequest['execution_mode']> | null;
  readonly permission: NonNullable<CreateRunRequest['permission']> | null;
  readonly model: string;
  // One name=value per line.
  readonly labels: string;
  readonly requireReply: boolean;
  readonly policy: 'engine_judgement' | 'use_default';
  readonly session_timeout_sec: string;
  readonly turn_timeout_sec: string;
  readonly idle_timeout_sec: string;
  readonly tool_timeout_sec: string;
  readonly max_attempt: string;
}

export type Field = keyof Draft;
// Problems by field; '' stands for the whole form.
export type Problems = Readonly<Partial<Record<Field | '', string>>>;

export const NUMBERS = [
  'session_timeout_sec',
  'turn_timeout_sec',
  'idle_timeout_sec',
  'tool_timeout_sec',
  'max_attempt',
] as const satisfies readonly Field[];

const KEY = 'parley.new-run';
// Permissions are not remembered: they are chosen for each run.
const REMEMBERED = ['engine', 'cwd'] as const satisfies readonly Field[];
const EMPTY: Draft = {
  engine: '',
  prompt: '',
  cwd: '',
  mode: null,
  permission: null,
  model: '',
  labels: '',
  requireReply: true,
  policy: 'engine_judgement',
  session_timeout_sec: '',
  turn_timeout_sec: '',
  idle_timeout_sec: '',
  tool_timeout_sec: '',
  max_attempt: '',
};

// The values of the last run. The stored data may come from another version or be forged, so it is checked.
export function recallDraft(): Draft {
  try {
    const { engine, cwd } = JSON.parse(localStorage.getItem(KEY) ?? '{}') as Record<string, unknown>;
    return {
      ...EMPTY,
      ...(typeof engine === 'string' ? { engine } : {}),
      ...(typeof cwd === 'string' ? { cwd } : {}),
    };
  } catch {
    return EMPTY;
  }
}

export function rememberDraft(draft: Draft): void {
  try {
    localStorage.setItem(KEY, JSON.stringify(Object.fromEntries(REMEMBERED.map((name) => [name, draft[name]]))));
  } catch {
    // A browser without storage.
  }
}

export type ChosenDraft = Draft & {
  readonly mode: NonNullable<Draft['mode']>;
  readonly permission: NonNullable<Draft['permission']>;
};

// The form shows these values and sends them: a default that changes meanwhile does not change what the person saw.
export function withDefaults(draft: Draft, defaults: NewRunDefaults | null): ChosenDraft {
  return {
    ...draft,
    mode: draft.mode ?? defaults?.execution_mode ?? 'interactive',
    permission: draft.permission ?? defaults?.permission ?? 'workspace-write',
  };
}

// Leaves out empty values: the server fills in the model and the limits.
export function buildRequest(
  draft: ChosenDraft,
): { readonly request: CreateRunRequest } | { readonly problems: Problems } {
  const problems: Partial<Record<Field, string>> = {};
  if (draft.engine === '') problems.engine = t.newRun.engineMissing;
  if (draft.prompt.trim() === '') problems.prompt = t.newRun.promptMissing;
  const labels = parseLabels(draft.labels);
  if (labels === null) problems.labels = t.newRun.labelsWrong;
  const options: JsonObject = {};
  for (const name of NUMBERS) {
    const text = draft[name].trim();
    if (text !== '' && !(Number(text) > 0)) problems[name] = t.newRun.numberWrong;
    else if (text !== '') options[name] = Number(text);
  }
  if (!draft.requireReply)
    Object.assign(options, { interactive_require_user_reply: false, auto_decide_policy: draft.policy });
  if (Object.keys(problems).length > 0) return { problems };
  const [cwd, model] = [draft.cwd.trim(), draft.model.trim()];
  return {
    request: {
      engine: draft.engine,
      prompt: draft.prompt,
      execution_mode: draft.mode,
      permission: draft.permission,
      ...(cwd === '' ? {} : { cwd }),
      ...(model === '' ? {} : { model }),
      ...(labels && Object.keys(labels).length > 0 ? { labels } : {}),
      ...(Object.keys(options).length > 0 ? { runtime_options: options } : {}),
    },
  };
}

function parseLabels(text: string): Record<string, string> | null {
  const pairs = text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .map((line) => /^([^=]+)=(.*)$/.exec(line));
  return pairs.includes(null)
    ? null
    : Object.fromEntries(pairs.map((pair) => [pair?.[1]?.trim() ?? '', pair?.[2]?.trim() ?? '']));
}

const FIELDS: Readonly<Record<string, Field>> = {
  engine: 'engine',
  prompt: 'prompt',
  cwd: 'cwd',
  model: 'model',
  permission: 'permission',
  execution_mode: 'mode',
  labels: 'labels',
  ...Object.fromEntries(NUMBERS.map((name) => [name, name])),
};

// Assigns a refusal of the server to its field.
export function problemsOf(error: unknown): Problems {
  const message = messageOf(error);
  if (!(error instanceof ParleyError)) return { '': message };
  if (error.code === 'UNREACHABLE') return { '': t.newRun.startAgain(message) };
  if (error.code === 'UNKNOWN_ENGINE') return { engine: message };
  if (error.code === 'PATH_NOT_ALLOWED') return { cwd: message };
  const problems = error.details['problems'];
  const byField = Array.isArray(problems)
    ? (problems as { path?: string; message?: string }[]).flatMap(({ path = '', message: text = '' }) =>
        entry(FIELDS[path.split('/')[1] ?? ''], text),
      )
    : [];
  if (byField.length > 0) return Object.fromEntries(byField);
  return { [fieldIn(message)]: message.replace(/^cwd /, t.newRun.theFolder) };
}

function entry(field: Field | undefined, text: string): [Field, string][] {
  return field === undefined ? [] : [[field, text]];
}

function fieldIn(message: string): Field | '' {
  if (/^cwd |^there is no folder /.test(message)) return 'cwd';
  return FIELDS[/^Runtime option (\w+)/.exec(message)?.[1] ?? ''] ?? '';
}

// The same request has the same key, so sending it repeatedly starts one run. Works on pages loaded over plain HTTP,
// which have no crypto.randomUUID().
export class RequestKeys {
  #body = '';
  #key = '';

  for(request: object): string {
    const body = JSON.stringify(request);
    if (body !== this.#body) {
      this.#body = body;
      const bytes = [...crypto.getRandomValues(new Uint8Array(16))];
      this.#key = `console-${bytes.map((byte) => byte.toString(16).padStart(2, '0')).join('')}`;
    }
    return this.#key;
  }
}

// A run that is about to be started: what the form has, the request that is made of it, and what is remembered for the
// next one.
import { ParleyError, type CreateRunRequest } from '../../../src/client/index.js';
import type { JsonObject } from '../../../src/kernel/json.js';
import { messageOf } from './server.js';

export interface Draft {
  readonly engine: string;
  readonly prompt: string;
  readonly cwd: string;
  readonly mode: NonNullable<CreateRunRequest['execution_mode']>;
  readonly permission: NonNullable<CreateRunRequest['permission']>;
  readonly model: string;
  // One name=value a line.
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
// What is wrong, by field; '' is the form as a whole.
export type Problems = Readonly<Partial<Record<Field | '', string>>>;

export const NUMBERS = [
  'session_timeout_sec',
  'turn_timeout_sec',
  'idle_timeout_sec',
  'tool_timeout_sec',
  'max_attempt',
] as const satisfies readonly Field[];

const KEY = 'parley.new-run';
// Not what it may do: that is said each time anew.
const REMEMBERED = ['engine', 'cwd'] as const satisfies readonly Field[];
const EMPTY: Draft = {
  engine: '',
  prompt: '',
  cwd: '',
  mode: 'interactive',
  permission: 'workspace-write',
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

// As the last one was started; what is stored may be of another version, or of somebody else's making.
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
    // A browser that keeps nothing.
  }
}

// Only what differs from the defaults is said.
export function buildRequest(draft: Draft): { readonly request: CreateRunRequest } | { readonly problems: Problems } {
  const problems: Partial<Record<Field, string>> = {};
  if (draft.engine === '') problems.engine = 'Choose an engine.';
  if (draft.prompt.trim() === '') problems.prompt = 'Say what it shall do.';
  const labels = parseLabels(draft.labels);
  if (labels === null) problems.labels = 'One name=value a line.';
  const options: JsonObject = {};
  for (const name of NUMBERS) {
    const text = draft[name].trim();
    if (text !== '' && !(Number(text) > 0)) problems[name] = 'A number above zero.';
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

// What the server refused, at the field that it speaks of.
export function problemsOf(error: unknown): Problems {
  const message = messageOf(error);
  if (!(error instanceof ParleyError)) return { '': message };
  if (error.code === 'UNREACHABLE')
    return { '': `${message}. Start it again when the server is back: it is started once.` };
  if (error.code === 'UNKNOWN_ENGINE') return { engine: message };
  if (error.code === 'PATH_NOT_ALLOWED') return { cwd: message };
  const told = error.details['problems'];
  const found = Array.isArray(told)
    ? (told as { path?: string; message?: string }[]).flatMap(({ path = '', message: text = '' }) =>
        entry(FIELDS[path.split('/')[1] ?? ''], text),
      )
    : [];
  if (found.length > 0) return Object.fromEntries(found);
  return { [fieldIn(message)]: message.replace(/^cwd /, 'The folder ') };
}

function entry(field: Field | undefined, text: string): [Field, string][] {
  return field === undefined ? [] : [[field, text]];
}

function fieldIn(message: string): Field | '' {
  if (/^cwd |^there is no folder /.test(message)) return 'cwd';
  return FIELDS[/^runtime option (\w+)/.exec(message)?.[1] ?? ''] ?? '';
}

// The same request has the same key, however often it is sent: it starts one run. A page that came over plain HTTP can
// make one, too.
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

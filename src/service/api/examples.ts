// One example for every request and response of the API, by operation id. Error examples use the messages of
// contract/errors.json, so that they always show the current wording. tests/service/api-examples.test.ts validates
// every example against its schema.
import { refusal, type RequestError } from '../../run/request-error.js';
import { EVENTS, INITIAL_STATE, STATES, TERMINAL_STATES } from '../../run/statechart.js';
import type { RunContract } from '../../run/waiting/run-contract.js';
import { envelope, type Refusal } from './error-envelope.js';
import {
  ASKED,
  DIGEST,
  FCMP_EVENT,
  INTERACTION,
  LABELS,
  NEXT_RUN,
  PENDING,
  PROMPT,
  RASP_EVENT,
  RESULT,
  RUN,
  RUNNING,
  SESSION,
  VERIFICATION,
  WAITING,
} from './sample-values.js';

interface Example {
  readonly summary: string;
  readonly value: unknown;
}
export type Examples = Readonly<Record<string, Example>>;

// By media type.
type Responses = Readonly<Record<string, Examples>>;

interface OperationExamples {
  readonly request?: Examples;
  readonly response?: Responses;
  readonly refused?: RequestError;
}

export const NO_TOKEN = refusal('UNAUTHORIZED.bad_token');
const NO_RUN = refusal('RUN_NOT_FOUND.unknown', { run: RUN });
export const SHUTTING_DOWN: { readonly error: Refusal } = envelope(refusal('SHUTTING_DOWN.change'));

export function one(summary: string, value: unknown): Examples {
  return { example: { summary, value } };
}

function json(summary: string, value: unknown): Responses {
  return { 'application/json': one(summary, value) };
}

function frames(...lines: readonly (readonly [name: string, data: unknown, id?: number])[]): string {
  return lines
    .map(([name, data, id]) => {
      const head = `${id === undefined ? '' : `id: ${id}\n`}${name === 'message' ? '' : `event: ${name}\n`}`;
      return `${head}data: ${JSON.stringify(data)}\n\n`;
    })
    .join('');
}

function stream(summary: string, text: string): Responses {
  return { 'text/event-stream': one(summary, text) };
}

export function operationExamples({
  edges,
  runErrors,
  showsWaiting,
}: RunContract): Readonly<Record<string, OperationExamples>> {
  // Depending on the settings, runs also show how they wait.
  const waits = showsWaiting ? { interactive_profile: { kind: 'resumable' }, wait_deadline_at: null } : {};
  const running = { ...RUNNING, ...waits };
  const waiting = { ...WAITING, ...waits };
  const next = { ...running, run_id: NEXT_RUN, request_id: 'order-17-2', continue_from: RUN };
  const listed = { ...waiting, truncated: [] };
  const item = { ...PENDING, engine: 'codex', prompt: PROMPT, labels: LABELS, truncated: [] };
  return {
    createRun: {
      request: {
        smallest: { summary: 'Only the required members', value: { engine: 'codex', prompt: PROMPT } },
        interactive: {
          summary: 'A run that may ask, with an idempotency key and a label',
          value: {
            engine: 'codex',
            prompt: PROMPT,
            execution_mode: 'interactive',
            cwd: '/srv/shop',
            permission: 'workspace-write',
            labels: LABELS,
            request_id: 'order-17',
          },
        },
      },
      response: json('The run has started', running),
      refused: refusal('REQUEST_ID_CONFLICT', { request: 'order-17', run: RUN }),
    },
    listRuns: { response: json('A page with one run', { runs: [listed], next_cursor: null }) },
    streamRuns: {
      response: stream('A run begins to wait', frames(['reset', {}], ['ready', {}], ['run', listed])),
    },
    getRun: { response: json('A run that waits for an answer', waiting), refused: NO_RUN },
    deleteRun: { refused: NO_RUN },
    cancelRun: {
      response: json('The run is canceled', {
        ...running,
        status: 'canceled',
        error: { code: 'CANCELED_BY_USER', message: 'The run was canceled.' },
      }),
      refused: NO_RUN,
    },
    retryRun: {
      request: one('With an idempotency key', { request_id: 'order-17-2' }),
      response: json('The new run', { ...running, run_id: NEXT_RUN, request_id: 'order-17-2' }),
      refused: NO_RUN,
    },
    continueRun: {
      request: one('The next prompt', { prompt: 'Now update the changelog', request_id: 'order-17-2' }),
      response: json('The new run', { ...next, prompt: 'Now update the changelog' }),
      refused: NO_RUN,
    },
    forkRun: {
      request: one('Another way to continue', { prompt: 'Try it with PostgreSQL instead' }),
      response: json('The new run', {
        ...next,
        prompt: 'Try it with PostgreSQL instead',
        continue_from: null,
        fork_from: RUN,
      }),
      refused: NO_RUN,
    },
    listInteractions: { response: json('One open question', { interactions: [item], next_cursor: null }) },
    streamInteractions: {
      response: stream(
        'A question is answered',
        frames(['reset', {}], ['pending', item], ['ready', {}], ['resolved', { ...item, state: 'answered' }]),
      ),
    },
    getInteraction: {
      response: {
        'application/json': {
          question: { summary: 'A question of the agent', value: PENDING },
          approval: {
            summary: 'A request for permission',
            value: {
              ...PENDING,
              question: {
                kind: 'approval',
                prompt: 'The agent wants to run a command:\n  | npm test\nin\n  | /srv/shop',
                options: [
                  { label: 'Approve', value: { decision: 'approve' } },
                  { label: 'Decline', value: { decision: 'decline' } },
                ],
                action: { kind: 'command', command: 'npm test', cwd: '/srv/shop' },
                digest: DIGEST,
                channel: 'native',
              },
            },
          },
        },
      },
      refused: refusal('INTERACTION_NOT_FOUND.none', { run: RUN }),
    },
    reply: {
      request: {
        option: {
          summary: 'The value of an option',
          value: { interaction_id: INTERACTION, response: 'postgres', idempotency_key: 'answer-1' },
        },
        approval: {
          summary: 'A decision about an approval',
          value: { interaction_id: INTERACTION, response: { decision: 'approve', note: 'go' }, review: 'seen' },
        },
        fields: {
          summary: 'A member for each field',
          value: { interaction_id: INTERACTION, response: { q1: 'sqlite', q2: 'yes' } },
        },
        finish: {
          summary: 'The end of a conversation without an open question',
          value: { interaction_id: INTERACTION, finish: true },
        },
      },
      response: json('The run continues', { ...running, status: 'queued', waited_ms: 60_000 }),
      refused: refusal('INTERACTION_STALE', { interaction: INTERACTION, state: 'answered' }),
    },
    streamEvents: {
      response: stream('An event, and the end', frames(['message', FCMP_EVENT, 5], ['end', {}])),
      refused: NO_RUN,
    },
    streamRasp: {
      response: stream('An event, and the end', frames(['message', RASP_EVENT, 9], ['end', {}])),
      refused: NO_RUN,
    },
    readEvents: { response: json('One event', { events: [FCMP_EVENT], next_seq: 6 }), refused: NO_RUN },
    readRasp: { response: json('One event', { events: [RASP_EVENT], next_seq: null }), refused: NO_RUN },
    readLogs: {
      response: { 'application/octet-stream': one('A line of the engine', '{"type":"turn.completed"}\n') },
      refused: NO_RUN,
    },
    getResult: {
      response: {
        'application/json': {
          succeeded: {
            summary: 'A run that succeeded',
            value: { run_id: RUN, status: 'succeeded', result: RESULT, error: null },
          },
          failed: {
            summary: 'A run that failed',
            value: {
              run_id: RUN,
              status: 'failed',
              result: null,
              error: { code: 'ENGINE_EXITED', message: 'The engine exited with code 1.', details: { exit_code: 1 } },
            },
          },
        },
      },
      refused: NO_RUN,
    },
    listFiles: {
      response: json('One file', {
        files: [{ path: 'work/notes.md', bytes: 1280, modified_at: ASKED }],
        truncated: false,
      }),
      refused: NO_RUN,
    },
    readFile: { response: { 'application/octet-stream': one('A text file', '# Notes\n') }, refused: NO_RUN },
    downloadArchive: {
      response: { 'application/x-tar': one('The bytes of a tar archive', 'state.json…') },
      refused: NO_RUN,
    },
    verifyRun: {
      response: {
        'application/json': one('Nothing was altered', VERIFICATION),
        'application/x-ndjson': {
          waiting: { summary: 'A line while other checks run', value: { type: 'waiting', checks_before: 1 } },
          progress: {
            summary: 'A line while the check runs',
            value: { type: 'progress', events: 20, total_events: 42, log_bytes: 0, total_log_bytes: 0 },
          },
          result: { summary: 'The last line', value: { type: 'result', ...VERIFICATION } },
        },
      },
      refused: NO_RUN,
    },
    isAlive: { response: json('The process is alive', { status: 'ok' }) },
    isReady: {
      response: json('The store can be read', { status: 'ok' }),
      refused: refusal('INVALID_ARGUMENT.url'),
    },
    whoAmI: { response: json('A program', { name: 'shop', role: 'operator' }) },
    listEngines: {
      response: json('An engine that is ready', {
        engines: [
          {
            name: 'codex',
            found: true,
            program: '/usr/local/bin/codex',
            version: '0.166.0',
            proved_version: '0.166.0',
            login: true,
            forks: true,
            advice: null,
          },
        ],
        defaults: {
          execution_mode: null,
          permission: 'workspace-write',
          model: { codex: 'gpt-5.2-codex' },
          turn_timeout_sec: null,
          idle_timeout_sec: 1800,
          tool_timeout_sec: 14400,
        },
      }),
    },
    parserMetrics: {
      response: json('One profile', {
        profiles: [
          {
            engine: 'codex',
            profile: 'codex_ndjson',
            turns: 12,
            units: 480,
            parsed: 479,
            fallbacks: 1,
            hit_rate: 0.998,
            warnings: { UNKNOWN_EVENT_TYPE: 1 },
            unknown: {},
          },
        ],
      }),
    },
    getContract: {
      response: json('A part of the contract', {
        initial: INITIAL_STATE,
        states: STATES,
        terminal: TERMINAL_STATES,
        events: EVENTS.slice(0, 1),
        edges: edges.slice(0, 1),
        run_errors: runErrors.slice(0, 2),
      }),
    },
    metrics: { response: { 'text/plain': one('One metric', 'parley_runs{state="running"} 2\n') } },
    signIn: {
      request: {
        code: { summary: 'With the code of a link', value: { code: 'kq7f-2m9x' } },
        token: { summary: 'With a token', value: { token: 'ply_…' } },
      },
      response: json('The session', { name: 'ann', role: 'operator', expires_at: '2026-03-02T12:00:00.000Z' }),
      refused: refusal('INVALID_ARGUMENT.code_or_token'),
    },
    signOut: {},
    listSessions: {
      response: json('One browser', {
        sessions: [
          {
            session_id: SESSION,
            person: 'ann',
            token: null,
            created_at: '2026-01-31T11:00:00.000Z',
            last_used_at: '2026-01-31T12:00:00.000Z',
            expires_at: '2026-03-02T11:00:00.000Z',
            ends_at: '2026-02-07T12:00:00.000Z',
            address: '192.0.2.7',
            user_agent: 'Mozilla/5.0',
            current: true,
          },
        ],
        next_cursor: null,
      }),
    },
    endSession: { refused: refusal('NOT_FOUND.session', { session: SESSION }) },
    createSignInCode: {
      request: one('A link for the token "shop", for an hour', { as: 'shop', expires_in_sec: 3600 }),
      response: json('The link', {
        url: 'http://127.0.0.1:7717/#code=kq7f-2m9x',
        code: 'kq7f-2m9x',
        expires_at: '2026-01-31T13:00:00.000Z',
        name: 'shop',
        role: 'operator',
      }),
      refused: refusal('INVALID_ARGUMENT.token_invalid', { name: 'shop' }),
    },
    readAudit: {
      response: json('One row', {
        entries: [
          {
            seq: 1,
            ts: '2026-01-31T11:00:00.000Z',
            type: 'token.added',
            actor: { kind: 'user', name: 'ann' },
            address: null,
            body: { name: 'shop', role: 'operator' },
            digest: DIGEST,
          },
        ],
        next_after: null,
        head: { seq: 1, digest: DIGEST },
      }),
    },
  };
}

// Runs in any state for tests of commands: a real SQLite store in a temporary folder, counting ids and a clock that the
// test sets. Runs change their state through applyRunEvent, so no engine is started. Only the engine runtime is a stub.
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { CreateRunRequest } from '../../src/commands/create-request.js';
import { createRun, type Origin } from '../../src/commands/create-run.js';
import { buildHandle, findEngine } from '../../src/engines/registry.js';
import { applyRunEvent, type RunTransition } from '../../src/journal/apply-run-event.js';
import type { OrchestratorDeps } from '../../src/journal/deps.js';
import { toTimestamp } from '../../src/kernel/clock.js';
import { createCountingIds } from '../../src/kernel/ids.js';
import type { EngineRuntime, ResumeKnowledge } from '../../src/machine/engine-runtime.js';
import { singleHost } from '../../src/ownership/single-host.js';
import { draft, type RaspDraft } from '../../src/rasp/draft.js';
import type { RaspData, RaspEvent } from '../../src/rasp/event.js';
import { NO_FACTS } from '../../src/run/guards.js';
import { RequestError } from '../../src/run/request-error.js';
import { describeSession } from '../../src/run/session-handle.js';
import { waitPolicyOf } from '../../src/run/waiting/wait-policy.js';
import { openDataDir, type DataDir } from '../../src/store/sqlite/data-dir.js';
import { openDatabase } from '../../src/store/sqlite/open-database.js';
import type { InteractionRecord, RunRecord, Store } from '../../src/store/store.js';
import { SimulatedTimers } from './simulated-timers.js';

export const T0 = Date.parse('2026-11-15T12:00:00.000Z');

type Question = Omit<RaspData['interaction.requested'], 'interaction_id' | 'asked_at'>;

// One question of each kind that commands treat differently.
export const QUESTIONS = {
  text: { kind: 'open_text', prompt: 'Which name?', options: [], channel: 'tool' },
  choice: {
    kind: 'choose_one',
    prompt: 'Which port?',
    options: [
      { label: '80', value: 80 },
      { label: '443', value: 443 },
    ],
    default: 443,
    channel: 'envelope',
  },
  approval: {
    kind: 'approval',
    prompt: 'Run this command?',
    options: [{ label: 'Approve', value: { decision: 'approve' } }],
    action: { command: ['npm', 'test'] },
    digest: 'd1',
    channel: 'native',
  },
  form: {
    kind: 'fill_fields',
    prompt: 'Your data?',
    options: [],
    response_schema: { type: 'object', required: ['name'], properties: { name: { type: 'string' } } },
    channel: 'native',
  },
  conversation: { kind: 'open_text', prompt: 'The turn ended.', options: [], channel: 'conversation' },
} as const satisfies Record<string, Question>;

export type QuestionName = keyof typeof QUESTIONS;

export interface Waiting {
  readonly run: RunRecord;
  readonly question: InteractionRecord;
}

// The results of the stub runtime.
export interface StubRuntime {
  unusable: ReturnType<NonNullable<EngineRuntime['explainUnusable']>>;
  resume: ResumeKnowledge | null;
  hasSession: boolean | Error;
  // The engines that were probed.
  readonly probed: string[];
}

export const SESSION = '01a1e065-6fe8-7fd2-a5f7-dea3d46cd55c';

export class CommandBench {
  readonly root: string;
  readonly data: DataDir;
  readonly clock = { at: T0, now: (): number => this.clock.at };
  readonly ids = createCountingIds();
  readonly timers = new SimulatedTimers();
  readonly stub: StubRuntime = { unusable: null, resume: null, hasSession: true, probed: [] };

  private constructor(root: string, data: DataDir) {
    this.root = root;
    this.data = data;
  }

  static async open(): Promise<CommandBench> {
    const root = realpathSync(mkdtempSync(join(tmpdir(), 'parley-commands-')));
    return new CommandBench(root, await openDataDir(join(root, 'data'), { pid: process.pid }));
  }

  // Called before each test of a file that shares one bench, because opening a database takes longer than most tests.
  reset(): void {
    this.clock.at = T0;
    Object.assign(this.stub, { unusable: null, resume: null, hasSession: true });
    this.stub.probed.length = 0;
  }

  async close(): Promise<void> {
    await this.data.close();
    rmSync(this.root, { recursive: true, force: true });
  }

  get store(): Store {
    return this.data.store;
  }

  get deps(): OrchestratorDeps {
    return {
      store: this.store,
      clock: this.clock,
      ids: this.ids,
      timers: this.timers,
      dataDir: this.data.path,
      runtime: this.#runtime(),
      queueLimit: () => 1000,
      ...singleHost(this.store),
    };
  }

  #runtime(): EngineRuntime {
    const { stub } = this;
    return {
      findProgram: async () => null,
      environment: () => ({}),
      newSessionId: () => 'unused',
      explainUnusable: () => stub.unusable,
      knownResume: () => stub.resume,
      probeResume: async ({ name }) => {
        stub.probed.push(name);
        throw new Error('the probe failed');
      },
      hasSession: async () => {
        if (stub.hasSession instanceof Error) throw stub.hasSession;
        return stub.hasSession;
      },
    };
  }

  folder(...names: readonly string[]): string {
    const path = join(this.root, ...names);
    mkdirSync(path, { recursive: true });
    return path;
  }

  queued(request: Partial<CreateRunRequest> = {}, origin: Origin = {}): Promise<RunRecord> {
    const whole = { engine: 'codex', prompt: 'Build it.', execution_mode: 'interactive', ...request } as const;
    return createRun(this.deps, whole, origin);
  }

  async running(request: Partial<CreateRunRequest> = {}, origin: Origin = {}): Promise<RunRecord> {
    return this.apply(await this.queued(request, origin), { event: 'turn.started' });
  }

  // A first turn that confirms its session, asks the question and waits.
  async waiting(name: QuestionName = 'text', request: Partial<CreateRunRequest> = {}): Promise<Waiting> {
    return this.ask(await this.running(request), name);
  }

  // Ends the turn of a running run with a question.
  async ask(run: RunRecord, name: QuestionName = 'text'): Promise<Waiting> {
    const asked = draft('interaction.requested', {
      ...QUESTIONS[name],
      options: [...QUESTIONS[name].options],
      interaction_id: this.ids.interaction(),
      asked_at: toTimestamp(this.clock.at),
    } as RaspData['interaction.requested']);
    const facts = { ...NO_FACTS, pending: true, handle: true };
    const waiting = await this.apply(run, {
      event: 'turn.needs_input',
      facts,
      before: [this.confirmSession(run, { sticky: waitPolicyOf(run.spec).needsProcess }), asked],
    });
    const question = await this.store.loadPendingInteraction(run.run_id);
    if (!question) throw new Error('no question is pending');
    return { run: waiting, question };
  }

  // Ends a queued or running run. `session`: the turn confirmed a session first.
  async end(
    run: RunRecord,
    status: 'succeeded' | 'failed' | 'canceled' = 'succeeded',
    { session = false }: { readonly session?: boolean } = {},
  ): Promise<RunRecord> {
    const started = run.status === 'queued' && status !== 'canceled' ? { event: 'turn.started' as const } : null;
    const running = started ? await this.apply(run, started) : run;
    const before = session ? [this.confirmSession(run)] : [];
    const error = { code: 'ENGINE_EXITED', message: 'the engine exited' } as const;
    if (status === 'canceled') return this.apply(running, { event: 'run.canceled', before });
    if (status === 'failed') return this.apply(running, { event: 'turn.failed', error, before });
    return this.apply(running, { event: 'turn.succeeded', result: 'ok', before });
  }

  confirmSession(run: RunRecord, { sticky = false }: { readonly sticky?: boolean } = {}): RaspDraft {
    const { engine, cwd, home } = run.spec;
    const handle = buildHandle(findEngine(engine), SESSION, {
      cwd,
      home,
      attempt: run.attempt_number,
      type: sticky ? 'process' : 'session_id',
    });
    return draft('lifecycle.session.confirmed', { session: describeSession(handle) });
  }

  async apply(
    run: RunRecord,
    transition: Omit<RunTransition, 'facts'> & Partial<Pick<RunTransition, 'facts'>>,
  ): Promise<RunRecord> {
    const outcome = await applyRunEvent(this.deps, run, { facts: NO_FACTS, ...transition });
    if (!outcome.applied) throw new Error(`${transition.event} does not apply to a ${run.status} run`);
    return outcome.run;
  }

  // Writes invalid JSON into a column of the run's row, bypassing the store.
  async damage(runId: string, column: 'spec_json' | 'result_json' = 'spec_json'): Promise<void> {
    const db = await openDatabase(join(this.data.path, 'parley.db'));
    db.prepare(`UPDATE runs SET ${column} = '{' WHERE run_id = ?`).run(runId);
    db.close();
  }

  async eventsOf(runId: string): Promise<RaspEvent[]> {
    const lines = await this.store.readJournal(runId, 'rasp', { limit: 1000 });
    return lines.map((line) => JSON.parse(line) as RaspEvent);
  }

  async countRuns(): Promise<number> {
    return (await this.store.listRunIds({ limit: 1000 })).length;
  }
}

// Expects a refusal with this code, and returns its message.
export async function refusal(work: Promise<unknown> | (() => unknown), code: RequestError['code']): Promise<string> {
  const error: unknown = await Promise.resolve()
    .then(() => (typeof work === 'function' ? work() : work))
    .then(
      () => null,
      (problem: unknown) => problem,
    );
  expect(error).toBeInstanceOf(RequestError);
  expect((error as RequestError).code).toBe(code);
  return (error as RequestError).message;
}

// Waits for both calls. Returns the results and the errors.
export async function race<T>(...works: readonly Promise<T>[]): Promise<{ results: T[]; errors: unknown[] }> {
  const settled = await Promise.allSettled(works);
  return {
    results: settled.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : [])),
    errors: settled.flatMap((one) => (one.status === 'rejected' ? [one.reason as unknown] : [])),
  };
}

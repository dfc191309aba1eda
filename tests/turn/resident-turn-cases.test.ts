// A turn of a resident engine, on a real store: a scripted process prints what the app-server would print.
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { CreateRunRequest } from '../../src/commands/create-request.js';
import { createRun } from '../../src/commands/create-run.js';
import { findEngine } from '../../src/engines/registry.js';
import type { ResidentStart } from '../../src/engines/resident.js';
import { runFolder } from '../../src/journal/run-folder.js';
import { logsOf } from '../../src/journal/turn-logs.js';
import type { Json, JsonObject } from '../../src/kernel/json.js';
import type { EngineRuntime } from '../../src/machine/engine-runtime.js';
import { parseRuntimeOptions } from '../../src/run/runtime-options.js';
import { buildFirstPrompt } from '../../src/run/turn-prompt.js';
import { refuseTurn } from '../../src/run/turn-refused-error.js';
import type { RunRecord } from '../../src/store/store.js';
import { Residents, type IdleResident } from '../../src/turn/residents/residents.js';
import { runResidentTurn } from '../../src/turn/residents/resident-turn.js';
import type { TurnDeps } from '../../src/turn/turn-context.js';
import { LostRunError } from '../../src/turn/turn-writer.js';
import { CommandBench, SESSION } from '../support/command-bench.js';
import { ScriptedResident, serverSays, type Script } from '../support/scripted-resident.js';
import { SimulatedTimers } from '../support/simulated-timers.js';
import { dataOf, LIMITS, reply, sceneOf, typesOf, type SceneChanges } from '../support/turn-scene.js';

const engine = findEngine('codex-app-server');
const OTHER = '02a1e065-6fe8-7fd2-a5f7-dea3d46cd55c';
const OPENING = [serverSays.hello(), serverSays.thread(), serverSays.turn()];
const DONE = 'Ready.\n{"done":true,"result":7}';

let bench: CommandBench;
let residents: Residents;
beforeAll(async () => {
  bench = await CommandBench.open();
});
beforeEach(() => {
  bench.reset();
  residents = new Residents(new SimulatedTimers(), { parkAfterMs: 1000, max: 9 }, () => {});
});
afterAll(() => bench.close());

const logsIn = (run: RunRecord) => logsOf(engine, runFolder(bench.deps.dataDir, run.run_id), run.attempt_number);
const sha = (bytes: string) => createHash('sha256').update(bytes).digest('hex');

async function create(request: Partial<CreateRunRequest> = {}, { sticky = false } = {}): Promise<RunRecord> {
  bench.stub.resume = { resumes: !sticky, problem: null };
  const whole = { engine: engine.name, prompt: 'Go on.', execution_mode: 'interactive', ...request } as const;
  const run = await createRun({ ...bench.deps, mayNeedProcess: true }, whole, {});
  return bench.apply(run, { event: 'turn.started', epoch: run.epoch + 1 });
}

type Changes = Omit<SceneChanges, 'deps'> & {
  readonly idleResident?: IdleResident | null;
  readonly deps?: Partial<Omit<TurnDeps, 'runtime'>>;
  readonly runtime?: Partial<EngineRuntime>;
};

// A turn that can be started; `peer` is the process that it starts.
function prepare(
  run: RunRecord,
  script: Script,
  { idleResident = null, deps = {}, runtime = {}, ...changes }: Changes = {},
) {
  const starts: ResidentStart[] = [];
  const started: ScriptedResident[] = [];
  const startResident: EngineRuntime['startResident'] = async (_engine, start) => {
    starts.push(start);
    const resident = new ScriptedResident(logsIn(run), script);
    started.push(resident);
    return resident;
  };
  const whole = { ...bench.deps.runtime, environment: () => ({ A: '1' }), startResident, ...runtime };
  const scene = sceneOf(bench, run, { ...changes, deps: { ...deps, runtime: whole } });
  const command = { argv: ['codex', 'app-server'], cwd: run.spec.cwd, stdin: null, env: {} };
  return {
    ...scene,
    starts,
    get peer(): ScriptedResident {
      const [resident] = started;
      if (!resident) throw new Error('no process was started');
      return resident;
    },
    get startCount(): number {
      return started.length;
    },
    start: () => runResidentTurn(scene.context, { command, program: ['codex'], idleResident, residents }),
    events: () => bench.eventsOf(run.run_id),
  };
}

async function play(run: RunRecord, script: Script, changes: Changes = {}) {
  const scene = prepare(run, script, changes);
  return Object.assign(scene, { done: await scene.start() });
}

// Prints the whole output of the first turn.
const says = (...messages: readonly object[]): Script => ({
  converse: (self) => self.print(...OPENING, ...messages),
});

// The next turn of a run that waits, with the given answer. `keeps`: in the process that waited.
async function next(run: RunRecord, response: Json, { keeps = true } = {}) {
  const queued = await reply(bench, run, response);
  const idleResident = await residents.claim(run.run_id);
  if (!keeps) await idleResident?.resident.close();
  const running = await bench.apply(queued, { event: 'turn.started', epoch: queued.epoch + 1 });
  const answered = await bench.store.loadLatestInteraction(run.run_id);
  const handle = await bench.store.loadHandle(run.request_id);
  return { run: running, changes: { answered, handle, idleResident: keeps ? idleResident : null } };
}

const ended = async (run: RunRecord) =>
  (await bench.eventsOf(run.run_id))
    .filter(({ event }) => event.type === 'lifecycle.turn.ended')
    .map(({ data }) => data);

describe('a first turn', () => {
  test('starts a process, sends the prompt, and closes the process after a result', async () => {
    const run = await create({ execution_mode: 'auto', model: 'gpt-9' });
    const { done, peer, starts, events, limits } = await play(
      run,
      says(serverSays.message('Hello.'), serverSays.end()),
    );
    expect(done).toMatchObject({ status: 'succeeded', result: 'Hello.' });
    const { cwd, permission, home } = run.spec;
    expect(peer.calls).toEqual([
      {
        converse: { session: null, cwd, permission, mode: 'auto', model: 'gpt-9' },
        prompt: buildFirstPrompt('auto', 'Go on.', true),
      },
      'close',
    ]);
    const folder = runFolder(bench.deps.dataDir, run.run_id).path;
    const { signal, ...start } = starts[0] ?? {};
    expect(start).toEqual({ program: ['codex'], folder, home, cwd, env: { A: '1' }, mark: `${run.run_id}/1` });
    expect(signal?.aborted).toBe(false);
    expect(dataOf(await events(), 'lifecycle.process.spawned')).toEqual({ pid: 4711, start_time: '99' });
    expect(existsSync(join(folder, 'attempts/1/command.json'))).toBe(true);
    expect([residents.kept(), limits.lengths()]).toEqual([[], []]);
  });

  test('tells the agent how to ask where a person can be asked', async () => {
    const { peer } = await play(await create(), says(serverSays.message(DONE), serverSays.end()));
    expect(peer.calls[0]).toMatchObject({ prompt: buildFirstPrompt('interactive', 'Go on.', true) });
  });

  test('records both logs to their end, also what is printed while the process is closed', async () => {
    const run = await create({ execution_mode: 'auto' });
    await play(run, {
      converse: (self) => {
        self.complain('a warning\n');
        self.print(...OPENING, serverSays.message('Hello.'), serverSays.end());
      },
      close: (self) => {
        self.print(serverSays.message('Bye.'));
        self.exit({ code: 3, signal: null });
      },
    });
    const [stdout, stderr] = [logsIn(run).stdout, logsIn(run).stderr].map((path) => readFileSync(path, 'utf8'));
    expect(await ended(run)).toMatchObject([
      {
        exit: { code: 3, signal: null },
        streams: {
          stdout: { bytes: stdout?.length, sha256: sha(stdout ?? '') },
          stderr: { bytes: 10, sha256: sha(stderr ?? '') },
        },
      },
    ]);
    const texts = (await bench.eventsOf(run.run_id)).flatMap(({ data }) => data['text'] ?? []);
    expect(texts).toContain('Bye.');
  });

  test('of a fork begins with a copy of the session, and its later turns continue the copy', async () => {
    const fork_from = { run_id: 'run_0', session: OTHER, home: '/homes/0' };
    const run = await create();
    const fork = { ...run, spec: { ...run.spec, fork_from } };
    const script = says(serverSays.message('Hello.'), serverSays.end());
    const { done, peer } = await play(fork, script, { runtime: { copySession: async () => true } });
    expect(peer.calls[0]).toMatchObject({ converse: { session: OTHER, copies: true, mode: 'interactive' } });
    const later = await next(done, 'More.', { keeps: false });
    const again = { ...later.run, spec: { ...later.run.spec, fork_from } };
    const { peer: second } = await play(again, says(serverSays.message(DONE), serverSays.end()), later.changes);
    expect(second.calls[0]).toMatchObject({ converse: { session: SESSION } });
    expect(second.calls[0]).not.toHaveProperty('converse.copies');
  });

  test('passes over the processes of a host that lost its lease, if there are other hosts', async () => {
    const run = await create({ execution_mode: 'auto' });
    const ownership = { ...bench.deps.ownership, hasPeers: true };
    const script = says(serverSays.message('Hello.'), serverSays.end());
    const { starts } = await play(run, script, { deps: { ownership } });
    expect(starts[0]?.passesOver).toBe(`${run.run_id}/`);
  });
});

describe('a turn that needs a person', () => {
  test('keeps its process, which can be ended only through the kept processes', async () => {
    const held: string[] = [];
    const peers = {
      ...bench.deps.peers,
      hold: async (runId: string) => {
        held.push(`${runId} ${(await bench.store.loadRun(runId))?.status}`);
      },
    };
    const run = await create();
    const script = says(serverSays.message('Which one?'), serverSays.end());
    const { done, peer, control, limits } = await play(run, script, { deps: { peers } });
    expect(done.status).toBe('waiting_user');
    expect(held).toEqual([`${run.run_id} running`]);
    expect(limits.lengths()).toEqual([]);
    await control.cancel({ at: bench.clock.at, actor: null });
    expect([peer.isAlive, residents.has(run.run_id)]).toEqual([true, true]);
    expect(residents.idleResidentOf(run.run_id)).toMatchObject({ request: null, isNeeded: false });
    expect(dataOf(await bench.eventsOf(run.run_id), 'interaction.requested')).not.toHaveProperty('digest');
  });

  test('stores a question of the tool without a digest, and an approval with the digest of its action', async () => {
    const asks = await play(await create(), says(serverSays.question(1, 'Which port?')));
    expect(dataOf(await asks.events(), 'interaction.requested')).toMatchObject({ prompt: 'Which port?' });
    expect(dataOf(await asks.events(), 'interaction.requested')).not.toHaveProperty('digest');
    const approves = await play(await create(), says(serverSays.command(), serverSays.approval(1)));
    const { action, digest } = (dataOf(await approves.events(), 'interaction.requested') ?? {}) as JsonObject;
    expect(digest).toBe(engine.resident?.digest(action as JsonObject, approves.run.spec.permission));
    expect(residents.idleResidentOf(approves.run.run_id)?.request?.message.id).toBe(1);
  });

  test('asks what the last message asks', async () => {
    const message = 'Well.\n{"ask_user":{"prompt":"Which colour?","options":["red"]}}';
    const { events } = await play(await create(), says(serverSays.message(message), serverSays.end()));
    expect(dataOf(await events(), 'interaction.requested')).toMatchObject({ prompt: 'Which colour?' });
  });

  test('keeps a process that its session needs for as long as it waits', async () => {
    const run = await create({}, { sticky: true });
    const { done } = await play(run, says(serverSays.message('Which one?'), serverSays.end()));
    expect(done.status).toBe('waiting_user');
    expect(residents.idleResidentOf(run.run_id)).toMatchObject({ isNeeded: true });
  });

  test('is canceled if the cancel comes while it is decided whether to wait', async () => {
    const run = await create();
    const scene = prepare(run, says(serverSays.message('Which one?'), serverSays.end()), {
      runtime: {
        hasSession: async () => {
          await scene.control.cancel({ at: bench.clock.at, actor: null });
          return true;
        },
      },
    });
    expect((await scene.start()).status).toBe('canceled');
    expect([scene.peer.isAlive, residents.kept()]).toEqual([false, []]);
  });
});

const finish = (self: ScriptedResident): void => self.print(serverSays.message('Hello.'), serverSays.end());

describe('a request of the engine', () => {
  test('that no person can be asked is refused, and the turn continues', async () => {
    const script: Script = {
      ...says(serverSays.unknown(5)),
      refuse: (self) => (self.calls.length === 2 ? self.print(serverSays.unknown(6)) : finish(self)),
    };
    const { done, peer } = await play(await create({ execution_mode: 'auto' }), script);
    const refuse = 'attestation/generate is not handled';
    expect(peer.calls.slice(1)).toEqual([{ refuse, to: 5 }, { refuse, to: 6 }, 'close']);
    expect(done).toMatchObject({ status: 'succeeded', result: 'Hello.' });
  });

  test('is refused with its own reason, if it has one', async () => {
    const createReader: typeof engine.createReader = (...parts) => {
      const reader = engine.createReader(...parts);
      const openRequests = () =>
        (reader.openRequests?.() ?? []).map(({ message, params, question }) => ({
          message,
          params,
          question,
          refusal: 'it is too long',
        }));
      return { ...reader, openRequests };
    };
    const script = { ...says(serverSays.unknown(5)), refuse: finish };
    const { peer } = await play(await create(), script, { engine: { ...engine, createReader } });
    expect(peer.calls[1]).toEqual({ refuse: 'it is too long', to: 5 });
  });

  test('is not asked if the process no longer waits for the answer', async () => {
    const run = await create();
    const { done } = await play(run, {
      converse: (self) => {
        self.print(...OPENING, serverSays.command(), serverSays.approval(1));
        self.exit({ code: 1, signal: null });
      },
    });
    expect(done).toMatchObject({
      status: 'failed',
      error: { code: 'ENGINE_EXITED', details: { unanswered: { kind: 'approval' } } },
    });
    expect(residents.kept()).toEqual([]);
    expect(await ended(run)).toMatchObject([{ exit: { code: 1, signal: null } }]);
  });
});

// A run that waits for the answer to these requests, and its process, which then ends its turn.
const asks = async (...requests: readonly object[]) => {
  const { done, peer } = await play(await create(), {
    ...says(serverSays.command(), ...requests),
    answer: (self) => self.print(serverSays.message(DONE), serverSays.end()),
  });
  expect(done.status).toBe('waiting_user');
  return { run: done, peer };
};

// The same with the answer, in the next turn.
const answer = async (response: Json, ...requests: readonly object[]) => {
  const { run, peer } = await asks(...requests);
  const { run: running, changes } = await next(run, response);
  const { done, events, startCount } = await play(running, {}, changes);
  return { done, events, startCount, waited: peer };
};

describe('the answer of a person', () => {
  test('is given to the process that waits for it, after a decision was stored', async () => {
    const { done, waited, events, startCount } = await answer({ decision: 'approve' }, serverSays.approval(1));
    expect(waited.calls.slice(1)).toEqual([{ answer: { decision: 'accept' }, to: 1 }, 'close']);
    expect(startCount).toBe(0);
    expect(done).toMatchObject({ status: 'succeeded', result: 7 });
    expect(typesOf(await events()).filter((type) => type === 'interaction.approval.applied')).toHaveLength(1);
  });

  test('continues the session of its process, which does not name it again', async () => {
    const { done } = await play(await create(), {
      ...says(serverSays.question(1, 'Which port?')),
      answer: (self) => {
        const [message, end] = [serverSays.message(DONE), serverSays.end()];
        for (const { method, params } of [message, end])
          self.print({ method, params: { ...params, threadId: undefined } });
      },
    });
    const { run, changes } = await next(done, '80');
    expect((await play(run, {}, changes)).done).toMatchObject({ status: 'succeeded', result: 7 });
  });

  test('to a question is no decision, even with a note', async () => {
    const { done, waited, events } = await answer({ note: 'Take 80.' }, serverSays.question(1, 'Which port?'));
    expect(done.status).toBe('succeeded');
    expect(waited.calls.slice(1)).toMatchObject([{ to: 1 }, 'close']);
    expect(typesOf(await events())).not.toContain('interaction.approval.applied');
  });

  test('to an approval may come with a note, which the agent gets as well', async () => {
    const { waited } = await answer({ decision: 'approve', note: 'Only once.' }, serverSays.approval(1));
    expect(waited.calls.slice(1, 3)).toEqual([{ answer: { decision: 'accept' }, to: 1 }, { tell: 'Only once.' }]);
  });

  test('is applied if its note comes too late, which is reported', async () => {
    const { done, peer } = await play(await create(), {
      ...says(serverSays.approval(1)),
      answer: (self) => self.print(serverSays.message(DONE), serverSays.end()),
      tell: () => {
        throw new Error('no turn is running');
      },
    });
    const { run, changes } = await next(done, { decision: 'approve', note: 'Only once.' });
    const { done: finished, events } = await play(run, {}, changes);
    expect(finished.status).toBe('succeeded');
    expect(peer.calls).toContainEqual({ tell: 'Only once.' });
    expect(dataOf(await events(), 'diagnostic.engine.warning')?.['message']).toBe(
      'the note could not be given to the agent: no turn is running',
    );
  });

  test('belongs to its own attempt, with the output that came while the run waited', async () => {
    const { run, peer } = await asks(serverSays.approval(1));
    peer.print(serverSays.message('Meanwhile.'));
    peer.complain('odd\n');
    const { run: running, changes } = await next(run, { decision: 'approve' });
    await play(running, {}, changes);
    const log = readFileSync(logsIn(run).stdout, 'utf8');
    const [first, second] = (await ended(run)).map(({ streams }) => streams as JsonObject);
    const bytes = Number((first?.['stdout'] as JsonObject | undefined)?.['bytes']);
    expect(bytes).toBeGreaterThan(0);
    expect(log.slice(bytes).startsWith(JSON.stringify(serverSays.message('Meanwhile.')))).toBe(true);
    expect(second).toEqual({
      stdout: { from: bytes, bytes: log.length - bytes, sha256: sha(log.slice(bytes)) },
      stderr: { bytes: 4, sha256: sha('odd\n') },
    });
  });

  test('begins a turn in the same process if that was not asked in the middle of one', async () => {
    const { done, peer } = await play(await create(), {
      converse: (self) =>
        self.calls.length === 1
          ? self.print(...OPENING, serverSays.message('Which one?'), serverSays.end())
          : // The repeated end of the last turn ends nothing.
            self.print(
              serverSays.turn('turn_2'),
              serverSays.end(),
              serverSays.message(DONE),
              serverSays.end('completed', 'turn_2'),
            ),
    });
    const { run, changes } = await next(done, 'The first.');
    const { done: finished, startCount } = await play(run, {}, changes);
    expect(finished).toMatchObject({ status: 'succeeded', result: 7 });
    expect(startCount).toBe(0);
    expect(peer.calls[1]).toMatchObject({ converse: { session: SESSION }, prompt: 'The first.' });
  });

  test('is read with what the process has said before', async () => {
    const { run, peer } = await asks(serverSays.approval(1));
    // The running turn is turn_1: the end of another one does not end it.
    peer.print(serverSays.end('completed', 'turn_0'));
    const { run: running, changes } = await next(run, { decision: 'approve' });
    expect(await play(running, {}, changes)).toMatchObject({ done: { status: 'succeeded', result: 7 } });
  });

  test('that stops the turn ends it by the answer, where the engine does so', async () => {
    const { done, peer } = await play(await create(), {
      ...says(serverSays.approval(1)),
      // What it still asks is part of what was stopped.
      answer: (self) =>
        self.print(
          serverSays.question(2, 'Really?'),
          serverSays.message('{"ask_user":{"prompt":"Why?"}}'),
          serverSays.end('interrupted'),
        ),
    });
    const { run, changes } = await next(done, { decision: 'cancel', note: 'Too risky.' });
    const { done: stopped, events } = await play(run, {}, changes);
    expect(peer.calls.slice(1)).toEqual([{ answer: { decision: 'cancel' }, to: 1 }]);
    expect(stopped.status).toBe('waiting_user');
    const asked = (await events()).filter(({ event }) => event.type === 'interaction.requested');
    expect(asked.at(-1)?.data['prompt']).toContain('You stopped the turn');
  });

  test('that stops the turn interrupts it, where the answer alone does not', async () => {
    const { done, peer } = await play(await create(), {
      ...says(serverSays.toolApproval(1)),
      interrupt: (self) => self.print(serverSays.end('interrupted')),
    });
    const { run, changes } = await next(done, { decision: 'cancel' });
    const { done: stopped } = await play(run, {}, changes);
    expect(peer.calls.slice(1)).toMatchObject([{ to: 1 }, 'interrupt']);
    expect(stopped.status).toBe('waiting_user');
  });
});

const waits = async (...requests: readonly object[]): Promise<RunRecord> =>
  (await play(await create(), says(serverSays.command(), ...requests))).done;

describe('an answer whose process is gone', () => {
  test('is described to another process, which continues the session', async () => {
    const waiting = await waits(serverSays.question(1, 'Which port?'));
    const { run, changes } = await next(waiting, '80', { keeps: false });
    const other = serverSays.message('Of a subagent.', OTHER);
    const script = {
      converse: (self: ScriptedResident) => self.print(other, ...OPENING, serverSays.message(DONE), serverSays.end()),
    };
    const { done, peer } = await play(run, script, changes);
    expect(peer.calls[0]).toMatchObject({
      converse: { session: SESSION },
      prompt: expect.stringMatching(/^You asked: Which port\?\nThe answer: 80/) as string,
    });
    expect(done).toMatchObject({ status: 'succeeded', result: 7 });
  });

  test('is described to another process if the old one no longer waits for it or has exited', async () => {
    const ways = [(peer: ScriptedResident) => peer.withdraw(1), (peer: ScriptedResident) => peer.exit()];
    for (const leave of ways) {
      const { done, peer } = await play(await create(), says(serverSays.question(1, 'Which port?')));
      const { run, changes } = await next(done, '80');
      leave(peer);
      const second = await play(run, says(serverSays.message(DONE), serverSays.end()), changes);
      expect(second.done.status).toBe('succeeded');
      expect([peer.isAlive, second.startCount]).toEqual([false, 1]);
      expect(second.peer.calls[0]).toMatchObject({ prompt: expect.stringContaining('Which port?') as string });
    }
  });

  test('is used without asking again if the agent asks for the same action', async () => {
    const { run, changes } = await next(await waits(serverSays.approval(1)), { decision: 'approve' }, { keeps: false });
    const { done, peer, events } = await play(
      run,
      {
        ...says(serverSays.approval(9)),
        answer: (self) => self.print(serverSays.message(DONE), serverSays.end()),
      },
      changes,
    );
    expect(peer.calls.slice(1)).toEqual([{ answer: { decision: 'accept' }, to: 9 }, 'close']);
    expect(done).toMatchObject({ status: 'succeeded', result: 7 });
    expect(typesOf(await events()).filter((type) => type === 'interaction.requested')).toHaveLength(1);
  });

  test('is not used for another action, which is asked', async () => {
    const { run, changes } = await next(await waits(serverSays.approval(1)), { decision: 'approve' }, { keeps: false });
    const { done, peer } = await play(run, says(serverSays.approval(9, 'rm -rf /')), changes);
    expect([done.status, peer.calls.length]).toEqual(['waiting_user', 1]);
  });

  test('and stops the turn needs no process', async () => {
    const { run, changes } = await next(await waits(serverSays.approval(1)), { decision: 'cancel' }, { keeps: false });
    const { done, startCount, limits } = await play(run, {}, changes);
    expect([done.status, startCount, limits.lengths()]).toEqual(['waiting_user', 0, []]);
  });

  test('fails a run that needs its process', async () => {
    const first = await play(await create({}, { sticky: true }), says(serverSays.question(1, 'Which port?')));
    const { run, changes } = await next(first.done, '80', { keeps: false });
    const { done, startCount } = await play(run, {}, changes);
    expect([done.status, done.error?.code, startCount]).toEqual(['failed', 'INTERACTION_PROCESS_LOST', 0]);
  });
});

const conversation = async () => {
  const { done } = await play(await create(), says(serverSays.message('Which one?'), serverSays.end()));
  return next(done, 'The first.', { keeps: false });
};

describe('a process that continues a session', () => {
  test('must name it', async () => {
    const { run, changes } = await conversation();
    const end = { method: 'turn/completed', params: { turn: { id: 'turn_2', status: 'completed' } } };
    const { done } = await play(run, { converse: (self) => self.print(serverSays.hello(), end) }, changes);
    expect(done.error?.code).toBe('SESSION_RESUME_FAILED');
    expect(done.error?.message).toContain(SESSION);
  });

  test('is stopped if it names another one', async () => {
    const { run, changes } = await conversation();
    const script = { converse: (self: ScriptedResident) => self.print(serverSays.hello(), serverSays.thread(OTHER)) };
    const { done, peer } = await play(run, script, changes);
    expect([done.error?.code, peer.isAlive]).toEqual(['SESSION_RESUME_FAILED', false]);
    expect(done.error?.message).toContain(OTHER);
  });

  test('fails with the reason if it cannot be started', async () => {
    const { run, changes } = await conversation();
    const runtime = { startResident: () => Promise.reject(new Error('the lock is held')) };
    const { done } = await play(run, {}, { ...changes, runtime });
    expect(done.error).toMatchObject({
      code: 'SESSION_RESUME_FAILED',
      message: expect.stringContaining('the lock is held') as string,
    });
  });

  test('does not read the output of an earlier process as its own', async () => {
    const { run, changes } = await conversation();
    const old = new ScriptedResident(logsIn(run), {});
    old.print(serverSays.turn('turn_8'), serverSays.approval(8), serverSays.end('completed', 'turn_8'));
    old.exit();
    const { done, peer } = await play(run, says(serverSays.message(DONE), serverSays.end()), changes);
    expect(peer.from).toBeGreaterThan(0);
    expect(done).toMatchObject({ status: 'succeeded', result: 7 });
  });
});

describe('a process that fails', () => {
  test('in its turn fails the run with what it complained about', async () => {
    const { done } = await play(await create(), {
      converse: (self) => {
        self.complain('error: out of memory\n');
        self.print(...OPENING);
        self.exit({ code: 9, signal: null });
      },
    });
    expect(done.error).toMatchObject({
      code: 'ENGINE_EXITED',
      message: expect.stringContaining('error: out of memory') as string,
    });
  });

  test('to keep its log fails the run', async () => {
    const { done } = await play(await create({ execution_mode: 'auto' }), {
      ...says(serverSays.message('Hello.'), serverSays.end()),
      close: (self) => self.exit({ code: 0, signal: null }, new Error('the log is full')),
    });
    expect(done.error?.message).toContain('the log is full');
  });

  test('to take the prompt fails the run, and the first error counts', async () => {
    const { done, peer } = await play(await create(), {
      converse: (self) => {
        self.print(...OPENING);
        throw new Error('the model is unknown');
      },
      close: (self) => self.exit({ code: 0, signal: null }, new Error('the log is full')),
    });
    expect(done.error?.values).toEqual({ reason: 'the model is unknown' });
    expect(peer.calls.at(-1)).toBe('close');
  });

  test('to start fails the run, with what it printed', async () => {
    const run = await create({}, { sticky: true });
    const startResident = async () => {
      new ScriptedResident(logsIn(run), {}).print(...OPENING);
      throw new Error('the handshake failed');
    };
    const { done, limits, events } = await play(run, {}, { runtime: { startResident } });
    expect(done.error).toMatchObject({
      code: 'ENGINE_TURN_FAILED',
      message: expect.stringContaining('the handshake failed') as string,
    });
    expect(limits.lengths()).toEqual([]);
    expect(await ended(run)).toMatchObject([{ exit: { code: null }, parser: { units: 3 } }]);
    // The session ended with the process.
    expect(typesOf(await events())).not.toContain('lifecycle.session.confirmed');
  });

  test('to start with anything but an error fails the run', async () => {
    const runtime = { startResident: () => Promise.reject('no display') };
    const { done } = await play(await create(), {}, { runtime });
    expect(done.error?.message).toContain('no display');
  });
});

describe('a turn that is not started', () => {
  test('fails with the reason of the runtime', async () => {
    const refused = refuseTurn('ENGINE_SETTINGS_INVALID.form', { file: 'a', form: 'TOML' });
    const runtime = { startResident: () => Promise.reject(refused) };
    const { done, limits, events } = await play(await create(), {}, { runtime });
    expect(done.error?.code).toBe('ENGINE_SETTINGS_INVALID');
    expect(limits.lengths()).toEqual([]);
    expect(typesOf(await events())).not.toContain('lifecycle.turn.ended');
  });

  test('fails with the reason why it could not be prepared', async () => {
    const run = await create();
    const cwd = join(bench.root, 'missing');
    const { done, startCount } = await play({ ...run, spec: { ...run.spec, cwd } }, {});
    expect([done.error?.code, startCount]).toEqual(['WORKING_FOLDER_UNUSABLE', 0]);
  });

  test('is an error of ours without a way to start it, without a home and for another engine', async () => {
    const run = await create();
    const without = prepare(run, {}, { runtime: { startResident: undefined } as never });
    await expect(without.start()).rejects.toThrow('the runtime can start a resident engine');
    expect(without.limits.lengths()).toEqual([]);
    const homeless = prepare({ ...run, spec: { ...run.spec, home: null } }, {});
    await expect(homeless.start()).rejects.toThrow('the run has its own home');
    const other = prepare(run, {}, { engine: findEngine('codex') });
    await expect(other.start()).rejects.toThrow('the engine is resident');
  });

  test('has no lease; a process that was started meanwhile is closed', async () => {
    for (const leases of [0, 1]) {
      let checks = 0;
      const ownership = { ...bench.deps.ownership, mayRun: () => (checks += 1) <= leases };
      const scene = prepare(await create(), says(serverSays.end()), { deps: { ownership } });
      await expect(scene.start()).rejects.toThrow(LostRunError);
      expect([scene.startCount, scene.limits.lengths()]).toEqual([leases, []]);
      if (leases > 0) expect(scene.peer.calls).toEqual(['close']);
    }
  });
});

describe('the end of a turn from outside', () => {
  test('is a cancel: the process is closed', async () => {
    const scene = prepare(await create(), {
      converse: (self) => {
        self.print(...OPENING);
        void scene.control.cancel({ at: bench.clock.at, actor: null });
      },
    });
    expect((await scene.start()).status).toBe('canceled');
    expect(scene.peer.calls.at(-1)).toBe('close');
  });

  test('reaches a process that is being started', async () => {
    let signal: AbortSignal | undefined;
    const scene = prepare(
      await create(),
      {},
      {
        runtime: {
          startResident: async (_engine, start) => {
            ({ signal } = start);
            await scene.control.cancel({ at: bench.clock.at, actor: null });
            throw new Error('the start was aborted');
          },
        },
      },
    );
    expect((await scene.start()).status).toBe('canceled');
    expect(signal?.aborted).toBe(true);
  });

  test('is a deadline; while a tool runs it is another one', async () => {
    const { turn_timeout_sec: turn, tool_timeout_sec: tool, silence_notice_sec: notice } = LIMITS;
    const scene = prepare(await create(), says(serverSays.command()), { options: parseRuntimeOptions(LIMITS) });
    const done = scene.start();
    await expect
      .poll(() => scene.limits.lengths(), { interval: 2, timeout: 20_000 })
      .toEqual([notice, tool, turn].map((seconds) => seconds * 1000));
    scene.limits.advance(tool * 1000);
    expect((await done).error?.code).toBe('TOOL_CALL_TIMEOUT');
  });
});

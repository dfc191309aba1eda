// A resumed turn that fails before its session is confirmed has failed to resume, for any reason; the details name the
// cause.
import { chmodSync, copyFileSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { refuseTurn, TurnRefusedError } from '../../src/run/turn-refused-error.js';
import type { RunRecord } from '../../src/store/store.js';
import { createRoot, expectSound, openBench, standInRuntime, type Bench } from '../support/orchestrated.js';
import { STAND_INS, type StandIn } from '../support/stand-in.js';

const BIN = new URL('../stand-ins/bin/', import.meta.url).pathname;

interface Waiting {
  readonly bench: Bench;
  readonly root: string;
  readonly run: RunRecord;
  // A copy of the engine's program, for the test to damage.
  readonly program: string;
  // Set by the test: the error that the preparation of the next turn throws.
  failing: Error | null;
  answer(): Promise<RunRecord>;
}

async function waitWith(engine: string, rest: object = {}): Promise<Waiting> {
  const root = createRoot();
  const program = join(root, 'program');
  writeFileSync(
    program,
    `#!/bin/sh\nexec ${join(BIN, engine === 'codex-app-server' ? `${engine}-stand-in` : engine)} "$@"\n`,
  );
  chmodSync(program, 0o755);
  const { environment } = standInRuntime(root);
  const waiting: { failing: Error | null } = { failing: null };
  const bench = await openBench(root, {
    settings: { residents: { parkAfterMs: 0, max: 0 } },
    runtime: {
      findProgram: async () => [program],
      environment: (...args) => {
        if (waiting.failing) throw waiting.failing;
        return environment(...args);
      },
    },
  });
  const created = await bench.orchestrator.create({
    engine,
    prompt: '[[ask Which?|A|B]][[done 1]]',
    execution_mode: 'interactive',
    permission: 'full',
    ...rest,
  });
  const run = await bench.orchestrator.waitUntilIdle(created.run_id);
  expect(run).toMatchObject({ status: 'waiting_user' });
  return Object.assign(waiting, {
    bench,
    root,
    run,
    program,
    answer: async () => {
      const pending = await bench.data.store.loadPendingInteraction(run.run_id);
      await bench.orchestrator.reply(run.run_id, { interaction_id: pending?.interaction_id ?? '', response: 'A' });
      await bench.orchestrator.waitUntilIdle(run.run_id);
      return expectSound(bench, run.run_id);
    },
  });
}

const ENGINES: readonly (StandIn | 'codex-app-server')[] = [...STAND_INS, 'codex-app-server'];

const DAMAGE: readonly (readonly [string, string, (waiting: Waiting) => void])[] = [
  ['was removed', 'ENGINE_NOT_FOUND', ({ program }) => rmSync(program)],
  ['is not executable any more', 'ENGINE_NOT_FOUND', ({ program }) => chmodSync(program, 0o644)],
  ['has an interpreter that is gone', 'ENGINE_NOT_FOUND', ({ program }) => writeFileSync(program, '#!/nowhere/sh\n')],
];

test.each(ENGINES.flatMap((engine) => DAMAGE.map(([what, code, damage]) => [engine, what, code, damage] as const)))(
  '%s: a program that %s while the run waited',
  async (engine, _what, code, damage) => {
    const waiting = await waitWith(engine);
    damage(waiting);
    const ended = await waiting.answer();
    expect(ended).toMatchObject({
      status: 'failed',
      error: {
        code: 'SESSION_RESUME_FAILED',
        details: { cause: { code, message: expect.stringContaining(waiting.program) } },
      },
    });
    // The session is kept: when the program is back, a retry continues it.
    expect(await waiting.bench.data.store.loadHandle(ended.request_id)).not.toBeNull();
    await waiting.bench.close();
  },
);

test.each(['codex', 'codex-app-server'] as const)('%s: a program that cannot be found any more', async (engine) => {
  const waiting = await waitWith(engine);
  Object.assign(waiting.bench.deps.runtime, { findProgram: async () => null });
  expect((await waiting.answer()).error).toMatchObject({
    code: 'SESSION_RESUME_FAILED',
    details: { cause: { code: 'ENGINE_NOT_FOUND', message: expect.stringContaining('not found') } },
  });
  await waiting.bench.close();
});

test.each(['codex', 'codex-app-server'] as const)(
  '%s: a home that was deleted or replaced by a file',
  async (engine) => {
    for (const replace of [() => {}, (home: string) => writeFileSync(home, '')]) {
      const waiting = await waitWith(engine);
      const home = String(waiting.run.spec.home);
      renameSync(home, `${home}.gone`);
      replace(home);
      const { error } = await waiting.answer();
      expect(error).toMatchObject({
        code: 'SESSION_RESUME_FAILED',
        details: { cause: { message: expect.stringContaining(home) } },
      });
      await waiting.bench.close();
    }
  },
);

test('a workspace or settings that are refused, and a machine that refuses', async () => {
  const refusals = [
    refuseTurn('WORKING_FOLDER_UNUSABLE.programs', { path: 'x', programs: 'plugins', engine: 'codex' }),
    refuseTurn('ENGINE_SETTINGS_INVALID.form', { file: 'config.toml', form: 'TOML' }),
    Object.assign(new Error('EACCES: permission denied'), { code: 'EACCES', syscall: 'mkdir' }),
  ];
  for (const failing of refusals) {
    const waiting = await waitWith('codex');
    waiting.failing = failing;
    const { error } = await waiting.answer();
    expect(error).toMatchObject({
      code: 'SESSION_RESUME_FAILED',
      details: {
        cause: {
          code: failing instanceof TurnRefusedError ? failing.error.code : 'INTERNAL',
          message: expect.stringContaining(failing.message) as string,
        },
      },
    });
    await waiting.bench.close();
  }
});

test('an engine that dies before it confirms the session is the cause of a failed resume', async () => {
  const waiting = await waitWith('codex');
  writeFileSync(waiting.program, '#!/bin/sh\necho "Error: not logged in" >&2\nexit 9\n');
  expect((await waiting.answer()).error).toMatchObject({
    code: 'SESSION_RESUME_FAILED',
    details: { cause: { code: 'ENGINE_AUTH_REQUIRED', message: expect.stringContaining('code 9') } },
  });
  await waiting.bench.close();
});

test('a first turn keeps its own code', async () => {
  const root = createRoot();
  mkdirSync(join(root, 'work'));
  copyFileSync(join(BIN, 'codex'), join(root, 'codex'));
  chmodSync(join(root, 'codex'), 0o644);
  const bench = await openBench(root, { runtime: { findProgram: async () => [join(root, 'codex')] } });
  const { run_id: id } = await bench.orchestrator.create({ engine: 'codex', prompt: 'x' });
  expect((await bench.orchestrator.waitUntilIdle(id)).error).toMatchObject({ code: 'ENGINE_NOT_FOUND' });
  await bench.close();
});

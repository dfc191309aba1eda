// Sessions of the real CLIs that cannot be continued: the run fails with SESSION_RESUME_FAILED, and nothing is
// executed.
import { change } from '../store/conformance.js';
import { existsSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ENGINE_PROGRAMS } from '../../scripts/install-engines.mjs';
import { sessionFiles } from '../../src/machine/sessions/find-session.js';
import type { EngineSessionHandle } from '../../src/run/session-handle.js';
import type { RunRecord } from '../../src/store/store.js';
import type { RealEngine } from '../models/offline-config.js';
import { openRealBench, REAL_ENGINES, type BenchOptions, type RealBench } from './real-bench.js';

const FAILED = { status: 'failed', error: { code: 'SESSION_RESUME_FAILED' } };

interface Parked {
  readonly bench: RealBench;
  readonly run: RunRecord;
  readonly handle: EngineSessionHandle;
}

// A waiting run that would make a file after an answer.
async function park(engine: RealEngine, options?: BenchOptions): Promise<Parked> {
  const bench = await openRealBench(engine, options);
  const run = await bench.play('[[ask Which?]][[file never.txt]][[done 1]]', { execution_mode: 'interactive' });
  expect(run.status).toBe('waiting_user');
  const handle = await bench.data.store.loadHandle(run.request_id);
  if (!handle) throw new Error('a run that waits has a session');
  return { bench, run, handle };
}

// As if the stored data had been changed.
async function changeHandle({ bench, run }: Parked, handle: EngineSessionHandle): Promise<void> {
  await bench.data.store.append(change(run, { now: run.updated_at, handle }));
}

async function expectNothingDone(
  { bench, run }: Parked,
  { cwd = bench.cwd, found: findings = [] as readonly string[] } = {},
): Promise<void> {
  const asked = bench.model.requests.length;
  expect(await bench.reply(run.run_id, 'A', findings)).toMatchObject(FAILED);
  expect(bench.model.requests).toHaveLength(asked);
  expect(readdirSync(cwd)).not.toContain('never.txt');
}

const spawnedIn = async ({ bench, run }: Parked) =>
  (await bench.events(run.run_id)).filter(({ event }) => event.type === 'lifecycle.process.spawned').length;

// Starts a new conversation instead of continuing one, without reporting it.
function writeForgetful(root: string, engine: RealEngine): string {
  const path = join(root, 'forgetful');
  const word = { claude: '--resume', codex: 'resume', gemini: '--resume', opencode: '--session' }[engine];
  writeFileSync(
    path,
    `#!/bin/bash\nwords=()\nwhile [ $# -gt 0 ]; do\n  if [ "$1" = "${word}" ]; then shift 2; else words+=("$1"); ` +
      `shift; fi\ndone\nexec ${ENGINE_PROGRAMS[engine].join(' ')} "\${words[@]}"\n`,
    { mode: 0o755 },
  );
  return path;
}

describe.each(REAL_ENGINES)('%s', (engine) => {
  test('a session without its file is not continued', async () => {
    const parked = await park(engine);
    const files = await sessionFiles(parked.handle);
    expect(files.length).toBeGreaterThan(0);
    for (const file of files) rmSync(file);
    await expectNothingDone(parked);
  });

  test('a session id that nobody knows is not continued', async () => {
    const parked = await park(engine);
    const unknown = engine === 'opencode' ? 'ses_e1f66449dffeX9p6f24X5ABzIV' : '01a1e065-6fe8-7fd2-a5f7-dea3d46cd55c';
    await changeHandle(parked, { ...parked.handle, handle_value: unknown });
    await expectNothingDone(parked, { found: ['rows: the session differs from the one in the events'] });
  });

  test('a session of another folder is not continued, and nothing is started', async () => {
    const parked = await park(engine);
    await changeHandle(parked, { ...parked.handle, cwd: parked.bench.root });
    await expectNothingDone(parked, { found: ['rows: the session differs from the one in the events'] });
    expect(await spawnedIn(parked)).toBe(1);
  });

  test('a session whose folder was renamed is not continued, and nothing is started', async () => {
    const parked = await park(engine);
    const moved = `${parked.bench.cwd}-moved`;
    renameSync(parked.bench.cwd, moved);
    await expectNothingDone(parked, { cwd: moved });
    expect(await spawnedIn(parked)).toBe(1);
  });

  test('an engine that begins a new session instead is killed before it has done anything', async () => {
    const { bench, run } = await park(engine, {
      env: (root) => ({ [`PARLEY_${engine.toUpperCase()}_BIN`]: writeForgetful(root, engine) }),
    });
    // The model waits longer than it takes to detect the other id.
    expect(await bench.reply(run.run_id, 'Go on. [[answer Well.]][[sleep 20000]][[file never.txt]]')).toMatchObject(
      FAILED,
    );
    const ended = (await bench.events(run.run_id)).findLast(({ event }) => event.type === 'lifecycle.turn.ended');
    expect(ended?.data['completion']).toEqual({ result: 'interrupted', reason_code: 'SESSION_CHANGED' });
    expect(existsSync(join(bench.cwd, 'never.txt'))).toBe(false);
  });
});

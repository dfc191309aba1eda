// The process trees of the real CLIs: nothing of them survives a cancel or a timeout, and two runs never interfere.
import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { listMarked } from '../../src/process/process-table.js';
import { openRealBench, REAL_ENGINES } from './real-bench.js';

// A sleep that no other test of this machine starts.
let count = 0;
const uniqueSleep = () => `sleep ${3000 + (process.pid % 1000)}.${String((count += 1)).padStart(3, '0')}`;

function isRunning(command: string): boolean {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .some((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim() === command;
      } catch {
        return false;
      }
    });
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve));
}

// Longer than the time until the command starts, shorter than the ten seconds after which Codex lets a command run in
// the background.
const TURN_SEC = { claude: 7, codex: 7, gemini: 15, opencode: 30 };

describe.each(REAL_ENGINES)('%s', (engine) => {
  test('canceled in the middle of a shell command leaves no process of its tree', async () => {
    const bench = await openRealBench(engine);
    const command = uniqueSleep();
    const { run_id: runId } = await bench.orchestrator.create({
      engine,
      prompt: `[[tool ${command}]][[done 1]]`,
      cwd: bench.cwd,
      permission: 'full',
      model: bench.modelName,
    });
    await until(() => isRunning(command));
    expect(await bench.orchestrator.cancel(runId)).toMatchObject({ status: 'canceled' });
    expect(isRunning(command)).toBe(false);
    expect(listMarked().filter(({ mark }) => mark?.startsWith(`${runId}/`))).toEqual([]);
    await bench.waitUntilIdle(runId);
  });

  test('timed out in the middle of a shell command leaves no process of its tree', async () => {
    const bench = await openRealBench(engine);
    const command = uniqueSleep();
    const { run_id: runId } = await bench.orchestrator.create({
      engine,
      prompt: `[[tool ${command}]][[done 1]]`,
      cwd: bench.cwd,
      permission: 'full',
      model: bench.modelName,
      runtime_options: { turn_timeout_sec: TURN_SEC[engine] },
    });
    await until(() => isRunning(command));
    expect(await bench.waitUntilIdle(runId)).toMatchObject({ status: 'failed', error: { code: 'TURN_TIMEOUT' } });
    expect(isRunning(command)).toBe(false);
    expect(listMarked().filter(({ mark }) => mark?.startsWith(`${runId}/`))).toEqual([]);
  });

  test('two runs at once do not see each other', async () => {
    const bench = await openRealBench(engine);
    const [one, two] = await Promise.all(
      ['one', 'two'].map((name) =>
        bench.play(`I am ${name}. [[ask Which, ${name}?]][[done "${name}"]]`, { execution_mode: 'interactive' }),
      ),
    );
    if (!one || !two) throw new Error('two runs were started');
    expect(one.spec.home).not.toBe(two.spec.home);
    const handles = await Promise.all([one, two].map((run) => bench.data.store.loadHandle(run.request_id)));
    expect(handles[0]?.handle_value).not.toBe(handles[1]?.handle_value);
    const [first, second] = await Promise.all([bench.reply(one.run_id, 'A'), bench.reply(two.run_id, 'B')]);
    expect([first?.result, second?.result]).toEqual(['one', 'two']);
    for (const { body } of bench.model.requests) {
      const text = JSON.stringify(body);
      expect(text.includes('I am one.') && text.includes('I am two.')).toBe(false);
    }
  });
});

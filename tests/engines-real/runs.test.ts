// Parley on the real CLIs: plain turns, tools, files, results, and every way in which a service fails.
import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ENGINE_PROGRAMS } from '../../scripts/install-engines.mjs';
import { runFolder } from '../../src/journal/run-folder.js';
import type { RaspEvent } from '../../src/rasp/event.js';
import { openRealBench, REAL_ENGINES, type RealBench } from './real-bench.js';

const of = (events: readonly RaspEvent[], type: string) => events.filter(({ event }) => event.type === type);

const GIVES_UP = {
  claude: 'ENGINE_SERVICE_FAILED',
  codex: 'ENGINE_TURN_FAILED',
  gemini: 'ENGINE_TURN_FAILED',
  opencode: 'ENGINE_IDLE_TIMEOUT',
} as const;
// Measured on two shared cores: Codex gives up after 26 s at most (30 requests), Gemini after 21 s (3 requests, without
// output), OpenCode after more than a minute (6 requests, without output).
const LIMITS = {
  claude: { turn_timeout_sec: 90, idle_timeout_sec: 30 },
  codex: { turn_timeout_sec: 90, idle_timeout_sec: 30 },
  gemini: { turn_timeout_sec: 90, idle_timeout_sec: 60 },
  opencode: { turn_timeout_sec: 90, idle_timeout_sec: 20 },
};

// The bytes that an event refers to, cut out of the stored log.
function bytesOf(bench: RealBench, runId: string, { raw_ref: ref }: RaspEvent): string {
  if (!ref) return '';
  return readFileSync(runFolder(bench.data.path, runId).attempt(ref.attempt_number).logs[ref.stream])
    .subarray(ref.byte_from, ref.byte_to)
    .toString('utf8');
}

describe.each(REAL_ENGINES)('%s', (engine) => {
  test('a plain run succeeds with the last message, and names its session and its version', async () => {
    const bench = await openRealBench(engine);
    const run = await bench.play('[[answer Hello, 漢字.]]');
    expect(run).toMatchObject({ status: 'succeeded', result: 'Hello, 漢字.', attempt_number: 1 });
    const events = await bench.events(run.run_id);
    const [started] = of(events, 'lifecycle.turn.started');
    expect(started?.data['engine_version']).toMatch(/^\d+\.\d+\.\d+$/);
    // npm installed a script there; behind that of Codex and of OpenCode is the program itself.
    const argv = (started?.data['argv'] ?? []) as string[];
    expect(realpathSync(argv[0] ?? '')).toBe(realpathSync(ENGINE_PROGRAMS[engine].at(-1) ?? ''));
    expect(of(events, 'lifecycle.session.bound')).toHaveLength(1);
    expect(of(events, 'diagnostic.parser.warning').filter(({ data }) => data['code'] !== 'STDERR_TEXT')).toEqual([]);
    expect(await bench.data.store.sumTurns(run.run_id)).toMatchObject([{ engine, hit_rate: 1, fallbacks: 0 }]);
  });

  test('a tool call and a file change are events that name their own bytes', async () => {
    const bench = await openRealBench(engine);
    const run = await bench.play('[[tool echo "the output"]][[file made.txt]][[answer Both done.]]');
    expect(run).toMatchObject({ status: 'succeeded', result: 'Both done.' });
    const events = await bench.events(run.run_id);
    const tools = of(events, 'tool.call.completed');
    expect(tools.map(({ data }) => data['status'])).toEqual(tools.map(() => 'completed'));
    const shell = tools.find(({ data }) => data['kind'] === 'command');
    expect(JSON.stringify(shell?.data['output'])).toContain('the output');
    const [file] = of(events, 'artifact.file.changed');
    expect(String(file?.data['path'])).toMatch(/made\.txt$/);
    expect(existsSync(join(bench.cwd, 'made.txt'))).toBe(true);
    // Each comes from a line that mentions it.
    if (shell) expect(bytesOf(bench, run.run_id, shell)).toContain('the output');
    const calls = events.filter(
      ({ event, correlation }) =>
        event.type.startsWith('tool.call.') && correlation.item_id === file?.correlation.item_id,
    );
    expect([file, ...calls].map((event) => (event ? bytesOf(bench, run.run_id, event) : '')).join('')).toContain(
      'made.txt',
    );
    // Every call that has ended had started, with its input.
    const started = of(events, 'tool.call.started');
    for (const { correlation } of tools)
      expect(started.filter(({ correlation: start }) => start.item_id === correlation.item_id)).toHaveLength(1);
    expect(JSON.stringify(started.find(({ data }) => data['kind'] === 'command')?.data['input'])).toContain(
      'the output',
    );
  });

  test('a done marker gives the result, checked against the schema that was asked for', async () => {
    const bench = await openRealBench(engine);
    const schema = { type: 'object', required: ['n'], properties: { n: { type: 'integer' } } };
    expect(await bench.play('[[done {"n":7}]]', { output_schema: schema })).toMatchObject({
      status: 'succeeded',
      result: { n: 7 },
    });
    expect(await bench.play('[[done {"n":"seven"}]]', { output_schema: schema })).toMatchObject({
      status: 'failed',
      error: { code: 'OUTPUT_INVALID' },
    });
  });

  // The engine itself gives up within the limits, or they end it.
  test.each(['http 500', 'http 429', 'cut'])(
    'a service that answers with %s fails the run with its code, within the limits',
    async (what) => {
      const bench = await openRealBench(engine);
      expect(await bench.play(`[[${what}]]`, { runtime_options: LIMITS[engine] })).toMatchObject({
        status: 'failed',
        error: { code: engine === 'claude' && what === 'http 429' ? 'ENGINE_RATE_LIMITED' : GIVES_UP[engine] },
      });
    },
  );

  test('a service that refuses the key fails the run with its code', async () => {
    const bench = await openRealBench(engine);
    expect(await bench.play('[[http 401]]')).toMatchObject({
      status: 'failed',
      error: { code: 'ENGINE_AUTH_REQUIRED' },
    });
  });

  test('a service that never answers is waited for as long as the engine may be silent', async () => {
    const bench = await openRealBench(engine);
    expect(await bench.play('[[hang]]', { runtime_options: { idle_timeout_sec: 15 } })).toMatchObject({
      status: 'failed',
      error: { code: 'ENGINE_IDLE_TIMEOUT' },
    });
  });

  test('a service that cannot be reached fails the run with its code, within the limits', async () => {
    const bench = await openRealBench(engine);
    await bench.model.close();
    expect(await bench.play('hello', { runtime_options: LIMITS[engine] })).toMatchObject({
      status: 'failed',
      error: { code: GIVES_UP[engine] },
    });
  });
});

// Only this one follows the service's hint about when to retry.
test.each(['http 500 1', 'http 429 1'])('opencode gives up soon on a service that answers with %s', async (what) => {
  const bench = await openRealBench('opencode');
  expect(await bench.play(`[[${what}]]`, { runtime_options: { idle_timeout_sec: 60 } })).toMatchObject({
    status: 'failed',
    error: { code: 'ENGINE_TURN_FAILED' },
  });
});

test('codex keeps the keys of its environment out of the commands that it runs', async () => {
  const bench = await openRealBench('codex');
  const run = await bench.play('[[tool env]][[done 1]]');
  expect(run.status).toBe('succeeded');
  const shell = of(await bench.events(run.run_id), 'tool.call.completed')
    .map(({ data }) => String(data['output']))
    .join('\n');
  expect(shell).toContain('PATH=');
  expect(shell).not.toContain('SCRIPTED_API_KEY');
});

test('opencode that is answered with nonsense without end is stopped as a runaway', async () => {
  const bench = await openRealBench('opencode');
  const run = await bench.play('[[html]]', { runtime_options: { turn_timeout_sec: 90 } });
  expect(run).toMatchObject({ status: 'failed', error: { code: 'ENGINE_TURN_FAILED' } });
  const [ended] = of(await bench.events(run.run_id), 'lifecycle.turn.ended');
  expect(ended?.data['completion']).toEqual({ result: 'interrupted', reason_code: 'RUNAWAY' });
});

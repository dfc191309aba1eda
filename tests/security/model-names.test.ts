// A model name is data: it never becomes an option of an engine, whichever way it reaches a run.
import { expect, test } from 'vitest';
import type { RequestError } from '../../src/run/request-error.js';
import { createSite, parley } from '../support/command.js';
import { alterStore } from '../support/altered-store.js';
import { createRoot, openBench, startsIn } from '../support/orchestrated.js';
import { serve } from '../support/served.js';

const BAD = [
  '--auto',
  '--yolo',
  '-c',
  '--attach=http://127.0.0.1:1',
  '',
  ' gpt',
  'a b',
  'a\n--yolo',
  '.hidden',
  '/etc',
  'é',
  'm;ls',
  `m${'x'.repeat(200)}`,
];
const GOOD = [
  'gpt-5.5',
  'anthropic/claude-3.5-sonnet:beta',
  'models/gemini-2.5-pro',
  'qwen2.5-coder:7b',
  'm@2026-01-01',
  'a+b',
  '5',
  `m${'x'.repeat(199)}`,
];

test('HTTP refuses a model that could be read as an option and names the rule', async () => {
  const served = await serve();
  try {
    for (const model of BAD) {
      const body = JSON.stringify({ engine: 'codex', prompt: '[[done 1]]', model });
      const response = await served.fetch('/v1/runs', { method: 'POST', body });
      expect(response.status, JSON.stringify(model)).toBe(400);
      expect(((await response.json()) as { error: { code: string } }).error.code).toBe('INVALID_ARGUMENT');
    }
    expect((await served.client.list()).runs).toEqual([]);
  } finally {
    await served.close();
  }
});

test('the command line refuses such a model before anything is stored', async () => {
  const site = createSite();
  for (const model of ['--yolo', 'a b', '/etc']) {
    const { code, stderr } = await parley(site, ['run', 'codex', 'x', `--model=${model}`]);
    expect(code).toBe(2);
    expect(stderr).toContain(`${JSON.stringify(model)} is not a model name`);
  }
});

test('a library caller is refused, and the names that engines use are taken', async () => {
  const root = createRoot();
  const bench = await openBench(root);
  try {
    for (const model of BAD) {
      await expect(
        bench.orchestrator.create({ engine: 'codex', prompt: 'x', model }),
        JSON.stringify(model),
      ).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    }
    for (const model of GOOD) {
      const { run_id: id } = await bench.orchestrator.create({ engine: 'codex', prompt: '[[done 1]]', model });
      expect(await bench.orchestrator.waitUntilIdle(id)).toMatchObject({ status: 'succeeded', spec: { model } });
    }
    expect(startsIn(root).map(({ argv }) => argv.filter((word) => word.includes('model')))).toEqual(
      GOOD.map((model) => [`--model=${model}`]),
    );
  } finally {
    await bench.close();
  }
});

test('a stored model of an older version is not inherited by continue, retry and fork', async () => {
  const bench = await openBench(createRoot(), {
    store: (store) =>
      alterStore(store, {
        loadRun: async (id) => {
          const run = await store.loadRun(id);
          return run && { ...run, spec: { ...run.spec, model: '--yolo' } };
        },
      }),
  });
  try {
    const { run_id: id } = await bench.orchestrator.create({
      engine: 'codex',
      prompt: '[[done 1]]',
      execution_mode: 'interactive',
    });
    await bench.orchestrator.waitUntilIdle(id);
    const calls = [
      bench.orchestrator.retry(id),
      bench.orchestrator.continueFrom(id, { prompt: 'on' }),
      bench.orchestrator.fork(id, { prompt: 'on' }),
    ];
    for (const outcome of await Promise.allSettled(calls)) {
      expect(outcome.status === 'rejected' && (outcome.reason as RequestError).message).toContain(
        '"--yolo" is not a model name',
      );
    }
  } finally {
    await bench.close();
  }
});

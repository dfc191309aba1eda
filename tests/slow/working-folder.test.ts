// The folder that a run works in: a turn that cannot work there, or would continue a session of another one, never
// starts.
import { change } from '../store/conformance.js';
import { mkdirSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { CreateRunRequest } from '../../src/commands/create-request.js';
import { runFolder } from '../../src/journal/run-folder.js';
import type { RunRecord } from '../../src/store/store.js';
import { createRoot, expectSound, journalOf, openBench, startsIn, type Bench } from '../support/orchestrated.js';
import { STAND_INS } from '../support/stand-in.js';

async function play(bench: Bench, rest: Partial<CreateRunRequest>): Promise<RunRecord> {
  const { run_id: runId } = await bench.orchestrator.create({
    engine: 'codex',
    prompt: '[[ask Which?]][[done 1]]',
    execution_mode: 'interactive',
    ...rest,
  });
  await bench.orchestrator.waitUntilIdle(runId);
  return expectSound(bench, runId);
}

async function answer(
  bench: Bench,
  { run_id: runId }: RunRecord,
  findings: readonly string[] = [],
): Promise<RunRecord> {
  const pending = await bench.data.store.loadPendingInteraction(runId);
  await bench.orchestrator.reply(runId, { interaction_id: pending?.interaction_id ?? '', response: 'x' });
  await bench.orchestrator.waitUntilIdle(runId);
  return expectSound(bench, runId, findings);
}

const WAYS: readonly (readonly [string, (cwd: string) => void])[] = [
  ['was renamed', (cwd) => renameSync(cwd, `${cwd}-moved`)],
  ['is gone', (cwd) => rmSync(cwd, { recursive: true })],
  [
    'is a file now',
    (cwd) => {
      rmSync(cwd, { recursive: true });
      writeFileSync(cwd, '');
    },
  ],
  [
    'is a link to another now',
    (cwd) => {
      renameSync(cwd, `${cwd}-moved`);
      mkdirSync(`${cwd}-other`);
      symlinkSync(`${cwd}-other`, cwd);
    },
  ],
];

describe.each(STAND_INS)('%s', (engine) => {
  test.each(WAYS)(
    'a session whose folder %s is not continued: SESSION_RESUME_FAILED, and nothing is started',
    async (_how, change) => {
      const root = createRoot();
      const bench = await openBench(root);
      const cwd = join(root, 'work');
      mkdirSync(cwd);
      const waiting = await play(bench, { engine, cwd });
      expect(waiting.status).toBe('waiting_user');
      change(cwd);
      const failed = await answer(bench, waiting);
      expect(failed).toMatchObject({
        status: 'failed',
        error: { code: 'SESSION_RESUME_FAILED', message: expect.stringContaining(cwd) },
      });
      expect(startsIn(root)).toHaveLength(1);
      const spawned = (await journalOf(bench, waiting.run_id)).rasp.filter(
        ({ event }) => event.type === 'lifecycle.process.spawned',
      );
      expect(spawned).toHaveLength(1);
      expect(await bench.data.store.loadHandle(waiting.request_id)).not.toBeNull();
      await bench.close();
    },
  );
});

test('a run given a link works in its target folder, at the start and after the link points elsewhere', async () => {
  const root = createRoot();
  const bench = await openBench(root);
  const [first, second, link] = ['first', 'second', 'link'].map((name) => join(root, name)) as [string, string, string];
  for (const folder of [first, second]) mkdirSync(folder);
  symlinkSync(first, link);
  const waiting = await play(bench, { cwd: link });
  expect(waiting.spec.cwd).toBe(first);
  unlinkSync(link);
  symlinkSync(second, link);
  expect((await answer(bench, waiting)).status).toBe('succeeded');
  expect(startsIn(root).map(({ cwd }) => cwd)).toEqual([first, first]);
  await bench.close();
});

test('a first turn whose folder has become a link to another never starts: WORKING_FOLDER_UNUSABLE', async () => {
  const root = createRoot();
  const cwd = join(root, 'work');
  mkdirSync(cwd);
  const bench = await openBench(root, {
    runtime: {
      findProgram: async () => {
        renameSync(cwd, `${cwd}-moved`);
        symlinkSync(`${cwd}-moved`, cwd);
        return ['never'];
      },
    },
  });
  expect(await play(bench, { cwd })).toMatchObject({
    status: 'failed',
    error: { code: 'WORKING_FOLDER_UNUSABLE', message: expect.stringContaining('-moved, which is another folder') },
  });
  expect(startsIn(root)).toEqual([]);
  await bench.close();
});

test('a session made in another folder is not continued: SESSION_RESUME_FAILED, and nothing is started', async () => {
  const root = createRoot();
  const bench = await openBench(root);
  const folder = join(root, 'project');
  mkdirSync(folder);
  const waiting = await play(bench, { cwd: folder });
  const handle = await bench.data.store.loadHandle(waiting.request_id);
  if (!handle) throw new Error('the run has a session');
  await bench.data.store.append(change(waiting, { handle: { ...handle, cwd: '/elsewhere' } }));
  expect(await answer(bench, waiting, ['rows: the session differs from the one in the events'])).toMatchObject({
    status: 'failed',
    error: { code: 'SESSION_RESUME_FAILED', message: expect.stringContaining('/elsewhere') },
  });
  expect(startsIn(root)).toHaveLength(1);
  await bench.close();
});

test('a workspace of the run itself is not made anew for a session that worked in it', async () => {
  const root = createRoot();
  const bench = await openBench(root);
  const waiting = await play(bench, {});
  rmSync(runFolder(bench.data.path, waiting.run_id).workspace, { recursive: true });
  expect(await answer(bench, waiting)).toMatchObject({ status: 'failed', error: { code: 'SESSION_RESUME_FAILED' } });
  expect(startsIn(root)).toHaveLength(1);
  await bench.close();
});

test('a first turn without its folder fails with WORKING_FOLDER_UNUSABLE, and nothing is started', async () => {
  const root = createRoot();
  const cwd = join(root, 'work');
  mkdirSync(cwd);
  const bench = await openBench(root, {
    runtime: {
      newSessionId: () => {
        // Created, claimed, and removed before anything is started.
        rmSync(cwd, { recursive: true });
        return '12345678-0000-4000-8000-000000000001';
      },
    },
  });
  expect(await play(bench, { cwd })).toMatchObject({
    status: 'failed',
    error: { code: 'WORKING_FOLDER_UNUSABLE', message: expect.stringContaining(`cannot work in ${cwd}`) },
  });
  expect(startsIn(root)).toEqual([]);
  await bench.close();
});

// A run that is written during its check is checked as it was when the check began: its writer cannot prolong the
// check, and changed rows are loaded again together with the events that changed them.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { Check } from '../../src/audit/check.js';
import { verifyRun } from '../../src/audit/verify-run.js';
import { runFolder } from '../../src/journal/run-folder.js';
import { draft } from '../../src/rasp/draft.js';
import type { RunRecord, Store } from '../../src/store/store.js';
import { TurnWriter } from '../../src/turn/turn-writer.js';
import { alterStore } from '../support/altered-store.js';
import { CommandBench } from '../support/command-bench.js';

let bench: CommandBench;
beforeAll(async () => {
  bench = await CommandBench.open();
});
beforeEach(() => bench.reset());
afterAll(() => bench.close());

const running = async (): Promise<RunRecord> => bench.apply(await bench.queued(), { event: 'turn.started', epoch: 1 });
const verify = (store: Store, run: RunRecord): Promise<Check[]> => verifyRun(store, bench.data.path, run);
const problems = (checks: readonly Check[]): Check[] => checks.filter(({ ok }) => !ok);
const findingOf = (checks: readonly Check[], name: string): string | undefined =>
  checks.find((check) => check.name === name)?.finding;

// What a running host would have written beside the journal.
async function writeFiles({ run_id: runId }: RunRecord): Promise<void> {
  const { path } = runFolder(bench.data.path, runId);
  mkdirSync(path, { recursive: true });
  for (const protocol of ['rasp', 'fcmp'] as const) {
    const lines = await bench.store.readJournal(runId, protocol, { limit: 1000 });
    writeFileSync(join(path, `${protocol}.jsonl`), lines.map((line) => `${line}\n`).join(''));
  }
}

test('a run that grows with every read is checked up to where it was', async () => {
  const run = await running();
  const writer = new TurnWriter(bench.deps, run, () => {});
  let reads = 0;
  const growing = alterStore(bench.store, {
    readSegments: async (...args) => {
      reads += 1;
      // A check that follows the writer sees all of them.
      if (reads <= 50) {
        writer.journal.add([draft('raw.stdout', { text: 'more' })]);
        await writer.flush();
      }
      return bench.store.readSegments(...args);
    },
  });
  const checks = await verify(growing, run);
  expect(problems(checks)).toEqual([]);
  expect(findingOf(checks, 'order')).toBe(`${run.heads.rasp_seq} events without a gap`);
  expect(writer.run.heads.rasp_seq).toBeGreaterThan(run.heads.rasp_seq);
  expect(reads).toBeLessThan(20);
});

test('rows that change while they are loaded are loaded again, with the events up to then', async () => {
  const run = await running();
  let asked: RunRecord | null = null;
  const changing = alterStore(bench.store, {
    listInteractions: async (runId) => {
      const questions = await bench.store.listInteractions(runId);
      if (asked === null) {
        asked = (await bench.ask(run)).run;
        await writeFiles(run);
      }
      return questions;
    },
  });
  const checks = await verify(changing, run);
  expect(problems(checks)).toEqual([]);
  expect(findingOf(checks, 'rows')).toContain('(1 question)');
  expect(findingOf(checks, 'chart')).toContain('waiting_user');
});

test('a waiting run that continues during its check is checked as it waited, without its files', async () => {
  const { run } = await bench.ask(await running());
  await writeFiles(run);
  expect(findingOf(await verify(bench.store, run), 'files')).toBe('rasp.jsonl and fcmp.jsonl match the database');
  let hasEnded = false;
  const continuing = alterStore(bench.store, {
    readSegments: async (...args) => {
      // After the rows were loaded.
      if (!hasEnded && args[2] < 0) {
        hasEnded = true;
        await bench.apply(run, { event: 'run.canceled' });
        await writeFiles(run);
      }
      return bench.store.readSegments(...args);
    },
  });
  const checks = await verify(continuing, run);
  expect(hasEnded).toBe(true);
  expect(problems(checks)).toEqual([]);
  expect(findingOf(checks, 'chart')).toContain('now waiting_user');
  expect(findingOf(checks, 'files')).toBe('not compared while the run is queued or running');
});

test('events that the row of a run does not count are found', async () => {
  const { run } = await bench.ask(await running());
  await writeFiles(run);
  const heads = { ...run.heads, rasp_seq: run.heads.rasp_seq - 2 };
  const shortened = alterStore(bench.store, { loadRun: async () => ({ ...run, heads }) });
  expect(problems(await verify(shortened, { ...run, heads })).map(({ name }) => name)).toEqual(['order']);
});

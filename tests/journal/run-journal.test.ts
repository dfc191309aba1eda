// The memory of flushes: large blocks are used again once their append is over, and nobody sees that.
import { expect, test } from 'vitest';
import { RunJournal } from '../../src/journal/run-journal.js';
import { draft } from '../../src/rasp/draft.js';
import type { FoldedRun } from '../../src/run/run-fold.js';
import { EMPTY_JOURNAL } from '../../src/store/store.js';

const KB = 1024;

function open(): {
  readonly drain: (chars: number) => NonNullable<ReturnType<RunJournal['drain']>>;
  journal: RunJournal;
} {
  const owner = { runId: 'run_1', engine: 'codex', attempt: 1 };
  const journal = new RunJournal(owner, { heads: EMPTY_JOURNAL, state: {} as FoldedRun }, { now: () => 0 });
  const drain = (chars: number) => {
    journal.add([draft('diagnostic.engine.warning', { message: 'x'.repeat(chars) })]);
    const drained = journal.drain();
    if (!drained) throw new Error('nothing was added');
    return drained;
  };
  return { journal, drain };
}

const blockOf = ({ lines }: ReturnType<ReturnType<typeof open>['drain']>) => lines.rasp.bytes.buffer;

test('a large block is used again after its flush was released, and not before', () => {
  const { journal, drain } = open();
  const first = drain(200 * KB);
  const text = first.lines.rasp.bytes.toString();
  const second = drain(200 * KB);
  expect(blockOf(second)).not.toBe(blockOf(first));
  expect(first.lines.rasp.bytes.toString()).toBe(text);
  journal.release(first);
  const third = drain(100 * KB);
  expect(blockOf(third)).toBe(blockOf(first));
  expect(third.lines.rasp.bytes.toString()).toMatch(/^\{.*"seq":3,.*\}\n$/);
  // Once: the next flush has another block.
  expect(blockOf(drain(100 * KB))).not.toBe(blockOf(first));
});

test('the bytes of a small flush are never used again, because the store keeps them', () => {
  const { journal, drain } = open();
  const small = drain(10 * KB);
  journal.release(small);
  expect(blockOf(drain(10 * KB))).not.toBe(blockOf(small));
  expect(blockOf(drain(200 * KB))).not.toBe(blockOf(small));
});

test('a spare block that is too small is replaced, and a huge one is not kept', () => {
  const { journal, drain } = open();
  const [small, huge] = [drain(100 * KB), drain(5 * KB * KB)];
  journal.release(small);
  const larger = drain(600 * KB);
  expect(blockOf(larger)).not.toBe(blockOf(small));
  expect(larger.lines.rasp.bytes.length).toBeGreaterThan(600 * KB);
  journal.release(huge);
  expect(blockOf(drain(100 * KB))).not.toBe(blockOf(huge));
});

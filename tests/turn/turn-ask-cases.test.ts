// The question tool of a turn: which turns get it, and the warning when tool and output disagree.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { appendAsk } from '../../src/ask/ask-file.js';
import { findEngine } from '../../src/engines/registry.js';
import { createCountingIds } from '../../src/kernel/ids.js';
import type { EngineRuntime } from '../../src/machine/engine-runtime.js';
import type { TurnEvidence } from '../../src/run/evidence.js';
import { parseQuestion } from '../../src/run/interaction.js';
import type { RunRecord } from '../../src/store/store.js';
import { askFor, hearAsks } from '../../src/turn/turn-ask.js';

const root = mkdtempSync(join(tmpdir(), 'parley-ask-'));
afterAll(() => rmSync(root, { recursive: true }));

const NONCE = 'int_7';
const codex = findEngine('codex');
const EVIDENCE: TurnEvidence = {
  sessionId: 's-1',
  success: true,
  failure: null,
  unfinished: null,
  questions: [],
  done: null,
  lastMessage: null,
  complaint: null,
};

const runOf = (mode: 'auto' | 'interactive') =>
  ({ run_id: 'run_1', attempt_number: 2, spec: { execution_mode: mode } }) as RunRecord;

const ask = (mode: 'auto' | 'interactive', askTool?: readonly string[]) =>
  askFor({ runtime: { askTool } as unknown as EngineRuntime, dataDir: '/data', ids: createCountingIds() }, runOf(mode));

describe('the tool of a turn', () => {
  test('writes to the file of the turn, with its own nonce', () => {
    const launch = ask('interactive', ['node', 'ask.js']);
    const file = '/data/runs/run_1/attempts/2/asks.jsonl';
    expect(launch).toMatchObject({ file });
    expect(launch?.nonce).toMatch(/^int_/);
    expect(launch?.command).toEqual(['node', 'ask.js', '--file', file, '--nonce', launch?.nonce]);
  });

  test('is not given to an auto run, or if there is none', () => {
    expect(ask('auto', ['node', 'ask.js'])).toBeNull();
    expect(ask('interactive')).toBeNull();
  });
});

describe('the questions of a turn', () => {
  let files = 0;
  const question = { prompt: 'Which?', kind: 'open_text' };
  const printed = parseQuestion(question, 'tool');

  async function hear(
    records: readonly ('listed' | 'asked')[],
    evidence: Partial<TurnEvidence>,
  ): Promise<{ count: number; remarks: string[]; codes: unknown[] }> {
    const file = join(root, `${(files += 1)}.jsonl`);
    for (const type of records) appendAsk(file, NONCE, type === 'listed' ? { type } : { type, question });
    const ask = { command: [], file, nonce: NONCE };
    const { evidence: heard, remarks } = await hearAsks(codex, ask, { ...EVIDENCE, ...evidence });
    for (const remark of remarks) expect(remark.sessionId).toBe('s-1');
    const texts = remarks.map(({ data }) => data as { code: string; message: string });
    return {
      count: heard.questions.length,
      remarks: texts.map(({ message }) => message),
      codes: texts.map(({ code }) => code),
    };
  }

  test('need no remark if the tool was listed and both agree', async () => {
    expect(await hear(['listed'], {})).toEqual({ count: 0, remarks: [], codes: [] });
    expect(await hear(['listed', 'asked'], { questions: [printed], receipts: [NONCE] })).toEqual({
      count: 1,
      remarks: [],
      codes: [],
    });
  });

  test('are doubtful if the engine succeeded without listing the tool', async () => {
    expect((await hear([], {})).codes).toEqual(['ASK_TOOL_NOT_LISTED']);
    expect((await hear([], { success: false })).codes).toEqual([]);
    expect((await hear(['listed'], { success: false })).codes).toEqual([]);
  });

  test('are kept if only one of the two has them, with a remark that counts them', async () => {
    expect(await hear(['listed', 'asked'], {})).toEqual({
      count: 1,
      remarks: ['1 questions were taken by the tool, but the output does not show them'],
      codes: ['ASK_WITNESS_MISSING'],
    });
    expect(await hear(['listed'], { questions: [printed] })).toEqual({
      count: 1,
      remarks: ['1 questions are in the output, but the tool did not write them down'],
      codes: ['ASK_WITNESS_MISSING'],
    });
  });

  test('are unsigned if the output lacks the nonce of the turn', async () => {
    for (const evidence of [{}, { receipts: [] }, { receipts: [null] }, { receipts: ['int_8'] }]) {
      const { count, remarks } = await hear(['listed', 'asked'], { questions: [printed], ...evidence });
      expect([count, remarks]).toEqual([
        1,
        ['1 questions are in the output, but not with what the tool answers in this turn'],
      ]);
    }
  });

  test('are those of the output alone without the tool', async () => {
    const evidence = { ...EVIDENCE, questions: [printed] };
    expect(await hearAsks(codex, null, evidence)).toEqual({ evidence, remarks: [] });
    const ask = { command: [], file: join(root, 'none'), nonce: NONCE };
    expect(await hearAsks(findEngine('iflow'), ask, evidence)).toEqual({ evidence, remarks: [] });
  });
});

// An event of the conversation as text and as bytes: the same line, whatever is in it.
import { expect, test } from 'vitest';
import { EventBuffer } from '../../src/journal/event-buffer.js';
import { FCMP_TYPES } from '../../src/fcmp/event.js';
import { createFcmpStamp, lineOf, type FcmpDraft } from '../../src/fcmp/stamp.js';

// The same text, in one part or in three.
function jsonOf(text: string, type: string, parts: number): FcmpDraft['json'] {
  const [before, long, after] = [`{"of":${JSON.stringify(type)},"text":`, JSON.stringify(text), '}'] as const;
  return parts === 1 ? before + long + after : [before, long, after];
}

test.each(['run_01M7M8RF2XMJX9YAHGDFH3HT2R', 'run "of" ünïcode'])('is one line, as text and as bytes: %s', (runId) => {
  const stamp = createFcmpStamp(runId);
  const sink = new EventBuffer();
  const drafts = FCMP_TYPES.flatMap((type, index): FcmpDraft[] =>
    [0, 1, 2].map((time) => ({
      seq: index * 3 + time + 1,
      ts: `2026-11-17T08:07:4${time}.079Z`,
      attempt: 1 + (index % 2),
      raspSeq: 4_000_000_000 + index,
      type,
      json: jsonOf(`"${'ä€😀\u2028\ud800 '.repeat(time * 20)}"`, type, time),
    })),
  );
  for (const draft of drafts) stamp(draft, sink);
  expect(sink.drain().toString()).toBe(drafts.map((draft) => `${lineOf(runId, draft)}\n`).join(''));
  for (const draft of drafts)
    expect(JSON.parse(lineOf(runId, draft))).toEqual({
      protocol_version: 'fcmp/1.0',
      run_id: runId,
      seq: draft.seq,
      ts: draft.ts,
      attempt_number: draft.attempt,
      rasp_seq: draft.raspSeq,
      type: draft.type,
      data: JSON.parse(typeof draft.json === 'string' ? draft.json : draft.json.join('')),
    });
});

import { expect, test } from 'vitest';
import { findEngine } from '../../src/engines/registry.js';
import { createCountingIds } from '../../src/kernel/ids.js';
import { RecordingReader } from '../../src/audit/read-recording.js';
import type { RaspEvent } from '../../src/rasp/event.js';

test('the times of a run never go back, even where the clock does', () => {
  const times = [5000, 9000, 2000, 1000, 9500, 0];
  let text = '';
  const reader = new RecordingReader(
    {
      engine: findEngine('codex'),
      mode: 'interactive',
      prompt: '',
      resumedFrom: null,
      clock: { now: () => times.shift() ?? 0 },
      ids: createCountingIds(),
    },
    { rasp: (lines) => (text += lines.toString()), fcmp: () => {} },
  );
  for (let line = 0; line < 4; line += 1) reader.push('stdout', Buffer.from('{"type":"turn.started"}\n'));
  reader.finish({ code: 0, signal: null });
  const stamps = text
    .trimEnd()
    .split('\n')
    .map((line) => (JSON.parse(line) as RaspEvent).ts);
  expect(stamps).toEqual(stamps.toSorted());
  expect(new Set(stamps).size).toBeGreaterThan(1);
});

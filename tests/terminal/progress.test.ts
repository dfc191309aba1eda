import * as fc from 'fast-check';
import stringWidth from 'string-width';
import { expect, test } from 'vitest';
import type { FcmpEvent } from '../../src/fcmp/event.js';
import { NO_ACTIVITY, nextActivity, progressLine, type Activity } from '../../src/terminal/progress.js';
import { CONTROL, event, hostile, loadRecorded, plain, RECORDED, RUNS, state } from './fixtures.js';

const fold = (...events: FcmpEvent[]): Activity => events.reduce(nextActivity, NO_ACTIVITY);
const started = event('conversation.started', { engine: 'codex', execution_mode: 'interactive', fold_version: 1 });
const running = state('queued', 'running', { ms: 1000 });
const tool = (id: string, command: string, ms: number) =>
  event('assistant.tool.started', { call_id: id, name: 'shell', kind: 'command', input: { command } }, { ms });
const ended = (id: string) =>
  event('assistant.tool.completed', { call_id: id, name: 'shell', kind: 'command', status: 'completed' });
const lineOf = (...events: FcmpEvent[]) => progressLine(fold(...events), 13_000, plain(80));

test('a run is queued, starts, thinks, writes, works and waits', () => {
  expect(lineOf(started)).toBe('⠋ queued · 13 s');
  expect(lineOf(started, running)).toBe('⠋ starting codex · 12 s');
  expect(lineOf(started, running, event('assistant.reasoning', { text: 'hm' }))).toBe('⠋ thinking · 12 s');
  expect(lineOf(started, running, event('assistant.message.delta', { message_id: 'm', text: 'H' }))).toBe(
    '⠋ writing · 12 s',
  );
  expect(lineOf(started, running, tool('1', 'npm test', 8000))).toBe('⠋ shell: npm test · 5 s');
  expect(lineOf(started, running, tool('1', 'npm test', 8000), tool('2', 'ls', 12_000))).toBe(
    '⠋ shell: ls · 1 s · 1 more running',
  );
  expect(lineOf(started, running, tool('1', 'npm test', 8000), ended('1'))).toBe('⠋ thinking · 12 s');
  expect(lineOf(started, running, state('running', 'waiting_user'))).toBeNull();
  expect(lineOf(started, running, state('running', 'failed'))).toBeNull();
});

test('a later attempt and the tokens so far are shown', () => {
  const step = event('usage', { scope: 'step', input_tokens: 600, output_tokens: 100 }, { attempt: 2 });
  const activity = fold(started, state('queued', 'running', { ms: 1000, attempt: 2 }), step, step);
  expect(progressLine(activity, 4000, plain(80))).toBe('⠋ starting codex · 3 s · turn 2 · 1.4k tokens');
  expect(progressLine(activity, 4000, plain(38))).toBe('⠋ starting codex · 3 s · turn 2');
  expect(progressLine(activity, 4000, plain(18))).toBe('⠋ starting… · 3 s');
});

test('the spinner goes by the time', () => {
  const frames = [0, 100, 199, 200, 1000].map((ms) => progressLine(fold(started), ms, plain(80))?.[0]);
  expect(frames).toEqual(['⠋', '⠙', '⠙', '⠹', '⠋']);
});

test('a clock behind the events does no harm', () => {
  expect(progressLine(fold(running), 0, plain(80))).toBe('⠋ starting');
});

test('leaves the last column free and obeys no engine', () => {
  fc.assert(
    fc.property(hostile(), hostile(), fc.integer({ min: 1, max: 100 }), fc.nat(), (name, command, width, nowMs) => {
      const call = event('assistant.tool.started', { call_id: null, name, kind: 'command', input: { command } });
      const line = progressLine(fold(started, running, call, tool('2', command, 0), call), nowMs, plain(width)) ?? '';
      expect(stringWidth(line)).toBeLessThan(width);
      expect(line).not.toMatch(CONTROL);
      expect(line).not.toContain('\n');
    }),
    RUNS,
  );
});

test('nothing runs at the end of any recorded turn', () => {
  for (const folder of RECORDED) {
    const activity = fold(...loadRecorded(folder));
    expect(progressLine(activity, 0, plain(80)), folder).toBeNull();
    expect(activity.tools).toEqual([]);
  }
});

// How a running turn is ended from outside: one reason reaches the engine, and a cancel request is recorded before it.
import { expect, test } from 'vitest';
import type { CancelRequest } from '../../src/store/store.js';
import { TurnControl } from '../../src/turn/turn-control.js';
import { Gate } from '../support/gate.js';

const ANN = { kind: 'token', name: 'ann' } as const;
const REQUEST: CancelRequest = { at: 1, actor: ANN };
const OTHER: CancelRequest = { at: 2, actor: { kind: 'token', name: 'ben' } };

const RECORDED = `record ${JSON.stringify(REQUEST)}`;

const refuse = () => Promise.reject(new Error('the disk is full'));

function scene() {
  const log: string[] = [];
  const control = new TurnControl();
  const child = { end: (reason: string) => void log.push(`end ${reason}`) };
  const writer = {
    flush: async () => void log.push('flush'),
    recordCancel: async (request: CancelRequest) => void log.push(`record ${JSON.stringify(request)}`),
  };
  return { log, control, child, writer };
}

test('a cancel request is recorded before the engine is ended', async () => {
  const { log, control, child, writer } = scene();
  control.attachWriter(writer);
  control.attach(child);
  await control.cancel(REQUEST);
  expect(log).toEqual([RECORDED, 'end canceled']);
  expect(control.canceledBy).toEqual(ANN);
  expect([control.wantsShutdown, control.isLost]).toEqual([false, false]);
});

test('a cancel request that comes first reaches the writer and the engine when they exist', async () => {
  const { log, control, child, writer } = scene();
  await control.cancel(REQUEST);
  expect(log).toEqual([]);
  control.attachWriter(writer);
  control.attach(child);
  expect(log).toEqual([RECORDED, 'end canceled']);
});

test('a turn without a request ends by itself', () => {
  const { log, control, child, writer } = scene();
  control.attachWriter(writer);
  control.attach(child);
  expect(log).toEqual([]);
  expect([control.wantsShutdown, control.isLost, control.canceledBy]).toEqual([false, false, undefined]);
});

test('the first of two cancel requests names who canceled', async () => {
  const { control } = scene();
  await Promise.all([control.cancel({ at: 1, actor: null }), control.cancel(OTHER)]);
  expect(control.canceledBy).toBeUndefined();
  const { control: named } = scene();
  await named.cancel(REQUEST);
  await named.cancel(OTHER);
  expect(named.canceledBy).toEqual(ANN);
});

test('the first of two cancel requests is the one that a later writer records', async () => {
  const { log, control, writer } = scene();
  await control.cancel(REQUEST);
  await control.cancel(OTHER);
  control.attachWriter(writer);
  expect(log).toEqual([RECORDED]);
});

test('a cancel request while the first is being recorded does not take its place', async () => {
  const { control, child } = scene();
  const recording = new Gate();
  control.attachWriter({ flush: async () => {}, recordCancel: () => recording.opened });
  control.attach(child);
  const first = control.cancel(REQUEST);
  const second = control.cancel(OTHER);
  recording.open();
  await Promise.all([first, second]);
  expect(control.canceledBy).toEqual(ANN);
});

test('a cancel request after another reason does not name who canceled', async () => {
  const { log, control, child } = scene();
  control.attach(child);
  control.shutdown();
  await control.cancel(REQUEST);
  expect(control.canceledBy).toBeUndefined();
  expect(control.wantsShutdown).toBe(true);
  expect(log).toEqual(['end shutdown', 'end shutdown']);
});

test('a cancel request that cannot be recorded still ends the engine', async () => {
  const { log, control, child } = scene();
  control.attachWriter({ flush: refuse, recordCancel: refuse });
  control.attach(child);
  await control.cancel(REQUEST);
  expect(log).toEqual(['end canceled']);
  const { control: late } = scene();
  await late.cancel(REQUEST);
  late.attachWriter({ flush: refuse, recordCancel: refuse });
  await new Promise((resolve) => setImmediate(resolve));
});

test.each([
  ['shutdown', (control: TurnControl) => control.shutdown(), true, false],
  ['shutdown', (control: TurnControl) => control.lose(), true, true],
  ['runaway', (control: TurnControl) => control.stopRunaway(), false, false],
  ['other_session', (control: TurnControl) => control.stopOtherSession(), false, false],
] as const)('the engine is ended with the reason %s', (reason, end, wantsShutdown, isLost) => {
  const { log, control, child } = scene();
  control.attach(child);
  end(control);
  expect(log).toEqual([`end ${reason}`]);
  expect([control.wantsShutdown, control.isLost]).toEqual([wantsShutdown, isLost]);
});

test('an abandoned turn stores its events, then ends its engine, and is lost from the start', async () => {
  const { log, control, child, writer } = scene();
  control.attachWriter(writer);
  control.attach(child);
  const abandoned = control.abandon();
  expect(control.isLost).toBe(true);
  await abandoned;
  expect(log).toEqual(['flush', 'end shutdown']);
});

test('an abandoned turn ends its engine also if its events cannot be stored, or without a writer', async () => {
  const { log, control, child } = scene();
  control.attach(child);
  await control.abandon();
  control.attachWriter({ flush: () => Promise.reject(new Error('no')), recordCancel: async () => {} });
  await control.abandon();
  expect(log).toEqual(['end shutdown', 'end shutdown']);
});

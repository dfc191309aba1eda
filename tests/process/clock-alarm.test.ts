// An alarm at a clock time, while the clock is being set.
import { expect, test } from 'vitest';
import { ClockAlarm } from '../../src/process/timers.js';
import { SimulatedTimers } from '../support/simulated-timers.js';

const HOUR = 3_600_000;

function start(at: number): {
  timers: SimulatedTimers;
  advance: (ms: number) => void;
  setClock: (now: number) => void;
  rings: number[];
  alarm: ClockAlarm;
} {
  const timers = new SimulatedTimers();
  let now = 1_000_000;
  const rings: number[] = [];
  const alarm = new ClockAlarm({ now: () => now }, timers);
  alarm.set(at, () => rings.push(now));
  const advance = (ms: number): void => {
    for (let left = ms; left > 0; left -= 1000) {
      now += Math.min(left, 1000);
      timers.advance(Math.min(left, 1000));
    }
  };
  return { timers, advance, setClock: (time) => (now = time), rings, alarm };
}

test('rings at its time, once, and leaves no timer', () => {
  const { timers, advance, rings } = start(1_012_000);
  advance(20_000);
  expect([rings, timers.lengths()]).toEqual([[1_012_000], []]);
});

test('rings soon after the clock was set forward past its time', () => {
  const { advance, setClock, rings } = start(1_000_000 + HOUR);
  advance(2000);
  setClock(1_000_000 + 2 * HOUR);
  advance(6000);
  expect(rings).toHaveLength(1);
});

test('an alarm that was set while the clock was an hour back rings soon after the clock is right again', () => {
  const { advance, setClock, rings, alarm } = start(1_004_000);
  setClock(1_000_000 - HOUR);
  // A caller that was woken in between waits again, now for an hour.
  alarm.set(1_004_000, () => rings.push(1));
  advance(6000);
  expect(rings).toEqual([]);
  setClock(1_006_000);
  advance(5000);
  expect(rings).toEqual([1]);
});

test('is silent when it was cleared', () => {
  const { timers, advance, rings, alarm } = start(1_012_000);
  alarm.clear();
  advance(20_000);
  expect([rings, timers.lengths()]).toEqual([[], []]);
});

// A changed config.json: settings that apply at once do, the others wait for a restart, and an invalid file changes
// nothing.
import { mkdirSync, mkdtempSync, renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { LiveSettings } from '../../src/settings/live-settings.js';
import { POLL_MS, stampOf, watchSettings } from '../../src/settings/watch-settings.js';
import { SimulatedTimers } from '../support/simulated-timers.js';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'parley-live-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const write = (config: object): void => writeFileSync(join(dir, 'config.json'), JSON.stringify(config));

describe('a reload', () => {
  test('applies settings that apply at once and keeps the others until a restart', () => {
    write({ queue_limit: 1, max_streams: 5, engines: { codex: { bin: '/a' } }, retention: { max_bytes: 7 } });
    const live = new LiveSettings(dir);
    write({ queue_limit: 2, max_streams: 6, defaults: { model: { codex: 'gpt-5' } }, cluster: { lease_sec: 20 } });
    expect(live.reload()).toEqual({
      applied: ['engines.codex.bin', 'queue_limit', 'defaults.model.codex', 'retention.max_bytes'],
      needRestart: ['max_streams', 'cluster.lease_sec'],
    });
    expect(live.current).toMatchObject({
      queue_limit: 2,
      max_streams: 5,
      engines: {},
      defaults: { model: { codex: 'gpt-5' } },
      retention: {},
      cluster: { lease_sec: 15 },
    });
    // Still different from the file, so still reported.
    expect(live.reload()).toEqual({ applied: [], needRestart: ['max_streams', 'cluster.lease_sec'] });
    expect(new LiveSettings(dir).current.max_streams).toBe(6);
  });

  test('refuses an invalid file as a whole and changes nothing', () => {
    write({ queue_limit: 1 });
    const live = new LiveSettings(dir);
    const before = live.current;
    write({ queue_limit: 2, slots: 0 });
    expect(() => live.reload()).toThrow('slots cannot be 0');
    writeFileSync(join(dir, 'config.json'), '{"queue_limit":');
    expect(() => live.reload()).toThrow('is not JSON');
    expect(live.current).toBe(before);
  });

  test('of a removed file brings the defaults back', () => {
    write({ slots: 3 });
    const live = new LiveSettings(dir);
    rmSync(join(dir, 'config.json'));
    expect(live.reload().applied).toEqual(['slots']);
    expect(live.current.slots).toBeNull();
  });
});

// Lets the current check finish, then makes one more.
async function poll(timers: SimulatedTimers, times = 1): Promise<void> {
  for (let time = 0; time < times; time += 1) {
    await timers.armed(POLL_MS);
    timers.advance(POLL_MS);
    await timers.armed(POLL_MS);
  }
}

function watch(timers: SimulatedTimers) {
  const counter = { changes: 0 };
  const onChange = async (): Promise<void> => void (counter.changes += 1);
  return { counter, ...watchSettings(dir, { timers, stamp: stampOf(dir), onChange }) };
}

describe('the watch', () => {
  test('reports a change once, when the file was the same at two checks', async () => {
    const timers = new SimulatedTimers();
    write({ slots: 1 });
    const { counter, close } = watch(timers);
    await poll(timers, 3);
    expect(counter.changes).toBe(0);
    write({ slots: 22 });
    await poll(timers);
    // It may still be writing.
    expect(counter.changes).toBe(0);
    write({ slots: 333 });
    await poll(timers);
    expect(counter.changes).toBe(0);
    await poll(timers, 3);
    expect(counter.changes).toBe(1);
    await close();
    expect(timers.lengths()).toEqual([]);
  });

  test('notices a file that is created, replaced, touched or removed', async () => {
    const timers = new SimulatedTimers();
    const { counter, close } = watch(timers);
    const path = join(dir, 'config.json');
    const changes = [
      () => write({}),
      () => {
        writeFileSync(join(dir, 'other'), '{}');
        renameSync(join(dir, 'other'), path);
      },
      () => utimesSync(path, 1, 1),
      () => rmSync(path),
      () => mkdirSync(path),
    ];
    for (const [index, change] of changes.entries()) {
      change();
      await poll(timers, 2);
      expect(counter.changes).toBe(index + 1);
    }
    await close();
  });

  test('notices a change between the first read and the start of the watch', async () => {
    const timers = new SimulatedTimers();
    const stamp = stampOf(dir);
    write({ slots: 1 });
    let changes = 0;
    const { close } = watchSettings(dir, { timers, stamp, onChange: async () => void (changes += 1) });
    await poll(timers, 2);
    expect(changes).toBe(1);
    await close();
  });
});

// A running server takes changed settings from config.json and logs what it did; an invalid file is reported once.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { applySettings } from '../../src/cli/serving/apply-settings.js';
import { LiveSettings } from '../../src/settings/live-settings.js';
import { POLL_MS, stampOf, type SettingsWatch } from '../../src/settings/watch-settings.js';
import { SimulatedTimers } from '../support/simulated-timers.js';

let dir: string;
let timers: SimulatedTimers;
let settings: LiveSettings;
let lines: string[];
let watch: SettingsWatch;
let applied: () => Promise<void>;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'parley-apply-'));
  timers = new SimulatedTimers();
  const stamp = stampOf(dir);
  settings = new LiveSettings(dir);
  lines = [];
  applied = async () => void lines.push('applied');
  const note =
    (level: string) =>
    (...args: unknown[]): void =>
      void lines.push(`${level}: ${String(args.at(-1))}`);
  const log = { info: note('info'), warn: note('warn'), error: note('error') };
  watch = applySettings({ dataDir: dir, settings, stamp, timers, log, onApplied: () => applied() });
});
afterEach(async () => {
  await watch.close();
  rmSync(dir, { recursive: true, force: true });
});

async function change(text: string): Promise<void> {
  writeFileSync(join(dir, 'config.json'), text);
  for (let time = 0; time < 3; time += 1) {
    await timers.armed(POLL_MS);
    timers.advance(POLL_MS);
  }
  await timers.armed(POLL_MS);
}

test('a change is applied and logged; what needs a restart is named', async () => {
  await change('{"slots":3,"max_streams":7}');
  expect(settings.current).toMatchObject({ slots: 3, max_streams: 4000 });
  expect(lines).toEqual([
    'info: config.json was changed; applied: slots',
    'warn: config.json was changed; restart the server to apply: max_streams',
    'applied',
  ]);
});

test('an invalid file is reported once, changes nothing, and a later valid one is applied', async () => {
  await change('{"slots":0,"queue":1}');
  expect(lines).toHaveLength(1);
  expect(lines[0]).toMatch(/^warn: The changed settings are not applied, the previous ones stay in force\. /);
  expect(lines[0]).toContain('config.json: There is no setting "queue".');
  expect(lines[0]).toContain('slots cannot be 0: the least is 1.');
  await change('{"slots":4}');
  expect(settings.current.slots).toBe(4);
  expect(lines.slice(1)).toEqual(['info: config.json was changed; applied: slots', 'applied']);
});

test('a failure while a change is applied is logged, and later changes are still noticed', async () => {
  applied = () => Promise.reject(new Error('the store is gone'));
  await change('{"slots":2}');
  expect(lines.at(-1)).toBe('error: a change of config.json could not be applied');
  applied = async () => {};
  await change('{"slots":20}');
  expect(settings.current.slots).toBe(20);
});

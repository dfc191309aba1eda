// npm run torture -- NAME...: the long-running stress tests. They are seeded (PARLEY_SEED), bounded, and take minutes;
// their short forms run in CI. Prints at the end whether each passed, how long it took, and its figures.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const torture = (form) => `tests/torture/${form}.test.ts`;
const FORMS = {
  stops: { files: [torture('stops')], env: { PARLEY_STOPS_RUNS: '60' } },
  disk: {
    files: [torture('disk'), torture('failing-writes'), torture('failing-calls')],
    env: { PARLEY_DISK_ROOMS: '8', PARLEY_DISK_EVERY: '1' },
  },
  clock: { files: [torture('clock')], env: { PARLEY_CLOCK_HISTORIES: '40' } },
  fsync: { files: [torture('fsync')], env: { PARLEY_FSYNC_CUTS: '6', PARLEY_FSYNC_MS: '250' } },
  torn: { files: [torture('torn'), torture('torn-small-files')], env: { PARLEY_TORN_CUTS: '12' } },
  corrupt: { files: [torture('corrupt')], env: { PARLEY_CORRUPTIONS: '40' } },
  schedules: { files: [torture('schedules')], env: { PARLEY_SCHEDULES: '1000' } },
  crash: { files: ['tests/slow/crash.test.ts'], env: { PARLEY_CRASH_RUNS: '300' } },
  model: { files: ['tests/slow/model.test.ts'], env: { PARLEY_MODEL_RUNS: '150' } },
  property: { files: ['tests/slow/property.test.ts'], env: { PARLEY_PROPERTY_RUNS: '4000' } },
  streams: {
    files: ['tests/slow/service/streams.test.ts'],
    env: { PARLEY_STREAM_CLIENTS: '200', PARLEY_STREAM_EVENTS: '20000', PARLEY_SLOW_EVENTS: '100000' },
  },
  survival: { files: ['tests/slow/service/survival.test.ts'], env: { PARLEY_WAITING_RUNS: '1000' } },
  fuzz: { files: ['tests/fuzz'], env: { PARLEY_FUZZ_TIMES: '20' } },
  hosts: { files: ['tests/postgres/torture.test.ts'], env: { PARLEY_HOSTS_RUNS: '300' } },
};

const names = process.argv.slice(2).length > 0 ? process.argv.slice(2) : Object.keys(FORMS);
const unknown = names.find((name) => !Object.hasOwn(FORMS, name));
if (unknown !== undefined) {
  console.error(`There is no stress test "${unknown}". Stress tests: ${Object.keys(FORMS).join(', ')}`);
  process.exit(2);
}
const seed = process.env.PARLEY_SEED ?? '20261116';
console.log(`seed ${seed}: PARLEY_SEED=${seed} repeats the same plan; the timing of real processes varies`);
const folder = mkdtempSync(join(tmpdir(), 'parley-torture-'));
const figures = join(folder, 'figures.txt');
const summary = [];
for (const name of names) {
  const { files, env } = FORMS[name];
  const began = Date.now();
  const { status } = spawnSync('npx', ['vitest', 'run', ...files], {
    cwd: fileURLToPath(new URL('..', import.meta.url)),
    stdio: 'inherit',
    env: { ...env, ...process.env, PARLEY_SEED: seed, PARLEY_FIGURES: figures },
  });
  if (status !== 0) process.exitCode = 1;
  summary.push(`${name}: ${status === 0 ? 'passed' : 'FAILED'}, ${Math.round((Date.now() - began) / 1000)} s`);
}
console.log(`\n${summary.join('\n')}\n${existsSync(figures) ? readFileSync(figures, 'utf8') : ''}`);
rmSync(folder, { recursive: true });

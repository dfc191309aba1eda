// npm run torture -- NAME...: the long forms of tests whose short ones are in every run of CI. Seeded (PARLEY_SEED), bounded, minutes long.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const FORMS = {
  crash: { project: 'slow', files: ['tests/slow/crash.test.ts'], env: { PARLEY_CRASH_RUNS: '300' } },
  model: { project: 'slow', files: ['tests/slow/model.test.ts'], env: { PARLEY_MODEL_RUNS: '150' } },
  property: { project: 'slow', files: ['tests/slow/property.test.ts'], env: { PARLEY_PROPERTY_RUNS: '4000' } },
  streams: { project: 'slow', files: ['tests/slow/service/streams.test.ts'], env: { PARLEY_STREAM_CLIENTS: '200', PARLEY_STREAM_EVENTS: '20000', PARLEY_SLOW_EVENTS: '100000' } },
  survival: { project: 'slow', files: ['tests/slow/service/survival.test.ts'], env: { PARLEY_WAITING_RUNS: '1000' } },
  fuzz: { project: 'slow', files: ['tests/fuzz'], env: { PARLEY_FUZZ_TIMES: '20' } },
  hosts: { project: 'postgres', files: ['tests/postgres/torture.test.ts'], env: { PARLEY_HOSTS_RUNS: '300' } },
};

const names = process.argv.slice(2).length > 0 ? process.argv.slice(2) : Object.keys(FORMS);
const unknown = names.find((name) => !Object.hasOwn(FORMS, name));
if (unknown !== undefined) {
  console.error(`there is no torture "${unknown}"; there are ${Object.keys(FORMS).join(', ')}`);
  process.exit(2);
}
for (const name of names) {
  const { project, files, env } = FORMS[name];
  const { status } = spawnSync('npx', ['vitest', 'run', '--project', project, ...files], { cwd: fileURLToPath(new URL('..', import.meta.url)), stdio: 'inherit', env: { ...env, ...process.env } });
  if (status !== 0) process.exitCode = 1;
}

// Start-up of the command: `parley --help`, `parley ls` and a server until it listens, compared with the bare start of
// Node, in turns in one run. With PARLEY_BENCH_BEFORE=FOLDER also for the built tree of an earlier version.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { earlierVersion } from './lib/systems.mjs';

const BIN = fileURLToPath(new URL('../bin/parley.js', import.meta.url));
const ROUNDS = 25;

const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];

export default async function benchCli() {
  const data = mkdtempSync(join(tmpdir(), 'parley-bench-'));
  const env = { ...process.env, PARLEY_DATA: data };
  try {
    // Gives `parley ls` a run to list.
    spawnSync(process.execPath, [BIN, 'run', 'rehearsal', '[[done 1]]', '--scratch'], { env });
    const versions = [{ program: BIN, suffix: '' }];
    const earlier = earlierVersion();
    if (earlier) versions.push({ program: earlier.program, suffix: ` (${earlier.who})` });
    const starts = {
      'node -e 0': () => runToEnd(['-e', '0'], env),
      ...Object.assign({}, ...versions.map(({ program, suffix }) => startsOf(program, suffix, env))),
    };
    const times = Object.fromEntries(Object.keys(starts).map((name) => [name, []]));
    for (let round = 0; round < ROUNDS; round += 1) {
      for (const [name, start] of Object.entries(starts)) times[name].push(await start());
    }
    const bare = median(times['node -e 0']);
    console.log(
      `start-up, median of ${ROUNDS} (spread), compared with bare Node in the same run; aim: a command takes less ` +
        'than 100 ms more',
    );
    for (const [name, values] of Object.entries(times)) {
      const sorted = values.toSorted((a, b) => a - b);
      console.log(
        `  ${name.padEnd(36)} ${median(values).toFixed(0).padStart(4)} ms  (${sorted[0].toFixed(0)} to ` +
          `${sorted.at(-1).toFixed(0)})  +${(median(values) - bare).toFixed(0)} ms`,
      );
    }
  } finally {
    rmSync(data, { recursive: true, force: true });
  }
}

function startsOf(program, suffix, env) {
  return {
    [`parley --help${suffix}`]: () => runToEnd([program, '--help'], env),
    [`parley ls${suffix}`]: () => runToEnd([program, 'ls'], env),
    [`parley show last${suffix}`]: () => runToEnd([program, 'show', 'last'], env),
    [`parley serve${suffix}`]: () => runToListening(program, env),
  };
}

function runToEnd(args, env) {
  const begin = performance.now();
  const { status } = spawnSync(process.execPath, args, { env });
  if (status !== 0) throw new Error(`${args.join(' ')} exited with ${status}`);
  return performance.now() - begin;
}

// With a data directory of its own.
async function runToListening(program, env) {
  const data = mkdtempSync(join(tmpdir(), 'parley-bench-'));
  try {
    const begin = performance.now();
    const child = spawn(process.execPath, [program, 'serve', '--json', '--port', '0', '--log-level', 'error'], {
      env: { ...env, PARLEY_DATA: data },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const closed = once(child, 'close');
    const [line] = await Promise.race([once(child.stdout, 'data'), closed]);
    const took = performance.now() - begin;
    if (!String(line).includes('"serving"')) throw new Error('the server did not start');
    child.kill('SIGTERM');
    await closed;
    return took;
  } finally {
    rmSync(data, { recursive: true, force: true });
  }
}

// Start-up of the command: `parley --help` and `parley ls` compared with the bare start of Node, in turns in one run.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const BIN = fileURLToPath(new URL('../bin/parley.js', import.meta.url));
const ROUNDS = 25;

const parley = (...args) => [process.execPath, [BIN, ...args]];
const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];

export default async function benchCli() {
  const data = mkdtempSync(join(tmpdir(), 'parley-bench-'));
  const env = { ...process.env, PARLEY_DATA: data };
  try {
    // Gives `parley ls` a run to list.
    spawnSync(...parley('run', 'rehearsal', '[[done 1]]', '--scratch'), { env });
    const commands = {
      'node -e 0': [process.execPath, ['-e', '0']],
      'parley --help': parley('--help'),
      'parley ls': parley('ls'),
      'parley show last': parley('show', 'last'),
    };
    const times = Object.fromEntries(Object.keys(commands).map((name) => [name, []]));
    for (let round = 0; round < ROUNDS; round += 1) {
      for (const [name, [bin, args]] of Object.entries(commands)) {
        const begin = performance.now();
        const { status } = spawnSync(bin, args, { env });
        times[name].push(performance.now() - begin);
        if (status !== 0) throw new Error(`${name} exited with ${status}`);
      }
    }
    const bare = median(times['node -e 0']);
    console.log(
      `start-up, median of ${ROUNDS} (spread), compared with bare Node in the same run; aim: less than 100 ms more`,
    );
    for (const [name, values] of Object.entries(times)) {
      const sorted = values.toSorted((a, b) => a - b);
      console.log(
        `  ${name.padEnd(18)} ${median(values).toFixed(0).padStart(4)} ms  (${sorted[0].toFixed(0)} to ` +
          `${sorted.at(-1).toFixed(0)})  +${(median(values) - bare).toFixed(0)} ms`,
      );
    }
  } finally {
    rmSync(data, { recursive: true, force: true });
  }
}

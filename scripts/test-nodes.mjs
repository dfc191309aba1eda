// Runs the unit tests on the other Node versions that Parley promises to run on. Each is installed from npm into .cache/.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const VERSIONS = ['22', '24'];
const root = fileURLToPath(new URL('..', import.meta.url));
let failed = false;

for (const version of VERSIONS) {
  const name = `node-${process.platform}-${process.arch}`;
  const cache = join(root, '.cache', 'nodes', version);
  const bin = join(cache, 'node_modules', name, 'bin', 'node');
  if (!existsSync(bin)) {
    mkdirSync(cache, { recursive: true });
    run('npm', ['install', '--silent', '--no-save', '--no-package-lock', '--prefix', cache, `${name}@${version}`]);
  }
  const found = spawnSync(bin, ['--version'], { encoding: 'utf8' }).stdout?.trim();
  console.log(`unit tests on Node ${found}`);
  const output = join('.cache', 'results', `node-${version}.json`);
  run(bin, ['node_modules/vitest/vitest.mjs', 'run', '--project', 'unit', '--reporter=dot', '--reporter=json', `--outputFile.json=${output}`]);
  run(bin, ['dist/main.js', 'demo'], 'ignore');
}
process.exitCode = failed ? 1 : 0;

function run(command, args, stdout = 'inherit') {
  const { status } = spawnSync(command, args, { cwd: root, stdio: ['ignore', stdout, 'inherit'] });
  if (status !== 0) {
    failed = true;
    console.error(`failed: ${command} ${args.join(' ')}`);
  }
}

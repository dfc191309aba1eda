// Runs the unit tests on the other Node versions that Parley supports, at the same time. Each is installed from npm
// into .cache/.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const VERSIONS = ['22', '24'];
const root = fileURLToPath(new URL('..', import.meta.url));

const outcomes = await Promise.all(
  VERSIONS.map(async (version) => {
    const bin = install(version);
    const tests = await run(bin, [
      'node_modules/vitest/vitest.mjs',
      'run',
      '--project',
      'unit',
      '--project',
      'programs',
      '--reporter=dot',
      '--reporter=json',
      `--outputFile.json=${join('.cache', 'results', `node-${version}.json`)}`,
    ]);
    const demo = await run(bin, ['bin/parley.js', 'demo']);
    // Printed one after the other, so that each stays readable.
    const node = spawnSync(bin, ['--version'], { encoding: 'utf8' }).stdout?.trim();
    console.log(`unit tests on Node ${node}\n${tests.output}${demo.failed ? demo.output : ''}`);
    return tests.failed || demo.failed;
  }),
);
process.exitCode = outcomes.includes(true) ? 1 : 0;

function install(version) {
  const name = `node-${process.platform}-${process.arch}`;
  const cache = join(root, '.cache', 'nodes', version);
  const bin = join(cache, 'node_modules', name, 'bin', 'node');
  if (!existsSync(bin)) {
    mkdirSync(cache, { recursive: true });
    spawnSync(
      'npm',
      ['install', '--silent', '--no-save', '--no-package-lock', '--prefix', cache, `${name}@${version}`],
      { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] },
    );
  }
  return bin;
}

async function run(command, args) {
  const child = spawn(command, args, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text));
  const [code] = await once(child, 'close').catch((error) => [String(error)]);
  if (code !== 0) output += `failed with ${code}: ${command} ${args.join(' ')}\n`;
  return { output, failed: code !== 0 };
}

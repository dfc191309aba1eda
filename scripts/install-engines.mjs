// Installs the real CLIs that the tests of the engines drive, in exactly these versions, from npm into .cache/engines/. Nothing
// of it is a dependency of the package. The folder is made beside and renamed when it is whole: an install that was cut off is
// begun anew, and one that is there is not repeated. Imported, it only says where the programs are.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ENGINE_PACKAGES = {
  codex: { name: '@openai/codex', version: '0.166.0' },
  gemini: { name: '@google/gemini-cli', version: '0.61.0' },
  opencode: { name: 'opencode-ai', version: '1.18.33' },
};

const root = fileURLToPath(new URL('..', import.meta.url));
const home = join(root, '.cache', 'engines');
const host = `${process.platform}-${process.arch}`;

// The native program of Codex lies in a folder that is named after what it was compiled for.
const CODEX_TARGETS = {
  'linux-x64': 'x86_64-unknown-linux-musl',
  'linux-arm64': 'aarch64-unknown-linux-musl',
  'darwin-x64': 'x86_64-apple-darwin',
  'darwin-arm64': 'aarch64-apple-darwin',
};

// The beginning of each command line. Codex and OpenCode come as native programs behind a script in Node; killed, the script
// of Codex would leave the program running.
export const ENGINE_PROGRAMS = locate(home);

function locate(folder) {
  const modules = join(folder, 'node_modules');
  return {
    codex: [join(modules, '@openai', `codex-${host}`, 'vendor', CODEX_TARGETS[host] ?? host, 'bin', 'codex')],
    gemini: [process.execPath, join(modules, '@google', 'gemini-cli', 'bundle', 'gemini.js')],
    opencode: [join(modules, `opencode-${host}`, 'bin', 'opencode')],
  };
}

// What is wrong with the engines in a folder, or nothing.
function findFault(folder) {
  for (const [engine, { name, version }] of Object.entries(ENGINE_PACKAGES)) {
    const manifest = join(folder, 'node_modules', name, 'package.json');
    if (!existsSync(manifest)) return `${name} is not there`;
    const found = JSON.parse(readFileSync(manifest, 'utf8')).version;
    if (found !== version) return `${name} is ${found}, not ${version}`;
    const program = locate(folder)[engine].at(-1);
    if (!existsSync(program)) return `${name} has no program for ${host}`;
  }
  return undefined;
}

// A new folder each time: an npm whose parent was killed may still be writing into an old one.
function createPartial() {
  const cache = dirname(home);
  mkdirSync(cache, { recursive: true });
  for (const name of readdirSync(cache)) if (name.startsWith('engines.partial-')) rmSync(join(cache, name), { recursive: true, force: true });
  return mkdtempSync(join(cache, 'engines.partial-'));
}

export function installEngines() {
  const fault = findFault(home);
  if (fault === undefined) return;
  const started = Date.now();
  console.log(`installing engines (${fault}); this takes about a minute and 900 MB`);
  const partial = createPartial();
  const dependencies = Object.fromEntries(Object.values(ENGINE_PACKAGES).map(({ name, version }) => [name, version]));
  writeFileSync(join(partial, 'package.json'), JSON.stringify({ private: true, dependencies }, null, 2));
  // They work without their install scripts.
  const args = ['install', '--ignore-scripts', '--no-package-lock', '--no-audit', '--no-fund', '--loglevel=error'];
  const { status, error } = spawnSync('npm', args, { cwd: partial, stdio: ['ignore', 'inherit', 'inherit'] });
  if (status !== 0) throw new Error(`npm ${args.join(' ')} failed`, { cause: error });
  const left = findFault(partial);
  if (left !== undefined) throw new Error(`npm has installed the engines, but ${left}`);
  rmSync(home, { recursive: true, force: true });
  renameSync(partial, home);
  console.log(`engines installed in ${Math.round((Date.now() - started) / 1000)} s`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  installEngines();
  for (const [engine, { version }] of Object.entries(ENGINE_PACKAGES)) console.log(`${engine} ${version}: .cache/engines`);
}

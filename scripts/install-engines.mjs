// Installs the real CLIs for the tests of the engines, in exactly these versions, from npm into .cache/engines/. None
// of them is a dependency of the package. The folder is filled under another name and renamed when it is complete: an
// interrupted install is repeated, and a complete one is not. Of two concurrent installs the first complete one wins.
// When imported, it only returns the paths of the programs.
import { spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ENGINE_PACKAGES = {
  claude: { name: '@anthropic-ai/claude-code', version: '2.1.326' },
  codex: { name: '@openai/codex', version: '0.166.0' },
  gemini: { name: '@google/gemini-cli', version: '0.61.0' },
  opencode: { name: 'opencode-ai', version: '1.18.33' },
};

const root = fileURLToPath(new URL('..', import.meta.url));
const home = join(root, '.cache', 'engines');
const host = `${process.platform}-${process.arch}`;

// The native program of Codex is in a folder named after its compile target.
const CODEX_TARGETS = {
  'linux-x64': 'x86_64-unknown-linux-musl',
  'linux-arm64': 'aarch64-unknown-linux-musl',
  'darwin-x64': 'x86_64-apple-darwin',
  'darwin-arm64': 'aarch64-apple-darwin',
};

// The beginning of each command line. Claude Code, Codex and OpenCode are native programs behind a Node script;
// killing the script of Codex would leave the program running.
export const ENGINE_PROGRAMS = locate(home);

function locate(folder) {
  const modules = join(folder, 'node_modules');
  return {
    claude: [join(modules, '@anthropic-ai', `claude-code-${host}`, 'claude')],
    codex: [join(modules, '@openai', `codex-${host}`, 'vendor', CODEX_TARGETS[host] ?? host, 'bin', 'codex')],
    gemini: [process.execPath, join(modules, '@google', 'gemini-cli', 'bundle', 'gemini.js')],
    opencode: [join(modules, `opencode-${host}`, 'bin', 'opencode')],
  };
}

// Returns the problem with the engines in a folder, or undefined.
function findFault(folder) {
  for (const [engine, { name, version }] of Object.entries(ENGINE_PACKAGES)) {
    const installed = versionIn(join(folder, 'node_modules', name, 'package.json'));
    if (installed === undefined) return `${name} is not there`;
    if (installed !== version) return `${name} is ${installed}, not ${version}`;
    const program = locate(folder)[engine].at(-1);
    if (!existsSync(program)) return `${name} has no program for ${host}`;
  }
  return undefined;
}

// Another install may move it away during this check.
function versionIn(manifest) {
  try {
    return JSON.parse(readFileSync(manifest, 'utf8')).version;
  } catch (error) {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  }
}

const cache = dirname(home);
// An install takes a minute; after that, its pid may belong to another process.
const ABANDONED_MS = 60 * 60 * 1000;

// A new folder each time, named after its owner: an npm whose parent was killed may still be writing into an old one.
function createFolder(kind) {
  mkdirSync(cache, { recursive: true });
  return mkdtempSync(join(cache, `engines.${kind}-${process.pid}-`));
}

// Removes leftovers of interrupted installs, but not the folder that another install is working on.
function removeAbandoned() {
  for (const name of readdirSync(cache)) {
    const owner = /^engines\.(?:partial|old)-(\d+)-/.exec(name)?.[1];
    const nobodys = owner === undefined && name.startsWith('engines.partial-');
    if (nobodys || (owner !== undefined && (!isAlive(Number(owner)) || isOld(join(cache, name)))))
      remove(join(cache, name));
  }
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
}

function isOld(path) {
  const made = statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  return Date.now() - made > ABANDONED_MS;
}

function remove(path) {
  rmSync(path, { recursive: true, force: true, maxRetries: 3 });
}

// Moves the new folder into place, unless another install was faster. A rename never replaces a folder that is not
// empty, so one of two installs always finds the result of the other.
function takePlace(partial) {
  while (findFault(home) !== undefined) {
    if (existsSync(home)) moveAway();
    if (tryRename(partial, home, ['ENOTEMPTY', 'EEXIST'])) return;
  }
  remove(partial);
}

// Another install may have moved its folder into place after our check; in that case it is restored.
function moveAway() {
  const folder = createFolder('old');
  const old = join(folder, 'engines');
  if (tryRename(home, old, ['ENOENT']) && findFault(old) === undefined) tryRename(old, home, ['ENOTEMPTY', 'EEXIST']);
  remove(folder);
}

// Returns false if it failed with one of these codes.
function tryRename(from, to, expectedCodes) {
  try {
    renameSync(from, to);
    return true;
  } catch (error) {
    if (expectedCodes.includes(error.code)) return false;
    throw error;
  }
}

export function installEngines() {
  const fault = findFault(home);
  if (fault === undefined) return;
  const started = Date.now();
  console.log(`installing engines (${fault}); this takes about a minute and 1.3 GB`);
  const partial = createFolder('partial');
  removeAbandoned();
  const dependencies = Object.fromEntries(Object.values(ENGINE_PACKAGES).map(({ name, version }) => [name, version]));
  writeFileSync(join(partial, 'package.json'), JSON.stringify({ private: true, dependencies }, null, 2));
  // They work without their install scripts.
  const args = ['install', '--ignore-scripts', '--no-package-lock', '--no-audit', '--no-fund', '--loglevel=error'];
  const { status, error } = spawnSync('npm', args, { cwd: partial, stdio: ['ignore', 'inherit', 'inherit'] });
  if (status !== 0) throw new Error(`npm ${args.join(' ')} failed`, { cause: error });
  const left = findFault(partial);
  if (left !== undefined) throw new Error(`npm has installed the engines, but ${left}`);
  takePlace(partial);
  console.log(`engines installed in ${Math.round((Date.now() - started) / 1000)} s`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  installEngines();
  for (const [engine, { version }] of Object.entries(ENGINE_PACKAGES))
    console.log(`${engine} ${version}: .cache/engines`);
}

// The systems that Parley is compared with, in exactly these versions, installed from npm into .cache/peers and never
// into the package. Their install scripts do not run. A system that cannot be installed here is reported, also in the
// table, and the others are measured without it.
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const cache = fileURLToPath(new URL('../../.cache/peers', import.meta.url));
const modules = join(cache, 'node_modules');
const host = `${process.platform}-${process.arch}`;

const PEERS = {
  'codex-sdk': { install: { '@openai/codex-sdk': '0.163.0' }, files: ['@openai/codex-sdk/dist/index.js'] },
  'sandbox-agent': {
    install: { '@sandbox-agent/cli': '0.4.2' },
    files: [`@sandbox-agent/cli-${host}/bin/sandbox-agent`],
  },
  // Requires a newer Node than we do.
  acpx: { install: { acpx: '0.19.1', [`node-${host}`]: '22' }, files: ['acpx/dist/cli.js', `node-${host}/bin/node`] },
};

const peers = new Map();

// Returns the path, name and version of a system; null if it cannot be installed, which is reported once.
export function peer(name) {
  if (!peers.has(name)) peers.set(name, find(name));
  return peers.get(name);
}

function find(name) {
  const { install, files } = PEERS[name];
  const [path] = files.map((file) => join(modules, file));
  const isThere = () => files.every((file) => existsSync(join(modules, file)));
  if (!isThere()) {
    mkdirSync(cache, { recursive: true });
    if (!existsSync(join(cache, 'package.json')))
      writeFileSync(join(cache, 'package.json'), '{"name":"peers","private":true}\n');
    spawnSync(
      'npm',
      [
        'install',
        '--silent',
        '--ignore-scripts',
        '--no-audit',
        '--no-fund',
        '--prefix',
        cache,
        ...Object.entries(install).map(([each, version]) => `${each}@${version}`),
      ],
      { stdio: ['ignore', 'ignore', 'inherit'] },
    );
  }
  if (!isThere()) {
    console.log(`${name} cannot be installed here, so it is not measured`);
    return null;
  }
  const [first] = Object.keys(install);
  const { version } = JSON.parse(readFileSync(join(modules, first, 'package.json'), 'utf8'));
  // npm sets the executable bit only for the declared programs of a package.
  if (name === 'sandbox-agent') chmodSync(path, 0o755);
  return { name: `${name} ${version}`, path };
}

// The row of a system that cannot be installed: without it, the table would seem to ignore the system.
export const absent = (who) => ({ who, note: 'not installed', round: () => ({}) });

export const newerNode = () => join(modules, `node-${host}`, 'bin', 'node');

// The SDK that acpx includes.
export function acpSdk() {
  const folder = join(modules, '@agentclientprotocol', 'sdk');
  const path = join(folder, 'dist', 'acp.js');
  return peer('acpx') && existsSync(path)
    ? { path, version: JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')).version }
    : null;
}

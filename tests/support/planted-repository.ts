// A folder, and the folders above it, full of files that some tool of our dependency tree could read or run:
// configuration under the name of every production package, package.json, node_modules, files of Node, npm and
// PostgreSQL. Scripts among them write a marker when they run. The same names also come as things that a reader never
// finishes: links to /dev/zero, pipes, sockets, devices.
import { execFileSync } from 'node:child_process';
import {
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { start, type CallOptions, type Ended, type Site } from './command.js';

export const KINDS = ['scripts', 'settings', 'broken', 'endless', 'pipes', 'sockets', 'devices'] as const;
export type Kind = (typeof KINDS)[number];

const ROOT = new URL('../../', import.meta.url).pathname;
// A command that has not ended by then waits for a planted object.
const LIMIT_MS = 45_000;

interface Lock {
  readonly packages: Readonly<Record<string, { readonly dev?: boolean; readonly devOptional?: boolean }>>;
}

// Names of all packages that are installed with Parley, and of tools that read their own files from the working folder.
function toolNames(): string[] {
  const lock = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as Lock;
  const installed = Object.entries(lock.packages)
    .filter(([path, { dev, devOptional }]) => path !== '' && !dev && !devOptional)
    .map(([path]) => path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length));
  return [...new Set([...installed, 'parley', 'graphile-worker', 'graphile', 'cosmiconfig', 'node', 'npm', 'yarn'])];
}

// Files that are run or parsed by programs that search for configuration like cosmiconfig, rc and lilconfig.
function configNames(tool: string): string[] {
  const name = tool.replace('@', '').replaceAll('/', '-');
  const rc = ['', '.json', '.yaml', '.yml', '.toml', '.js', '.cjs', '.mjs', '.ts'].flatMap((end) => [
    `.${name}rc${end}`,
    `.config/${name}rc${end}`,
  ]);
  return [...rc, ...['.json', '.js', '.cjs', '.mjs', '.ts'].map((end) => `${name}.config${end}`)];
}

const OTHERS = [
  'package.json',
  'crontab',
  '.env',
  '.env.local',
  '.npmrc',
  '.pgpass',
  'pg_service.conf',
  '.pg_service.conf',
  'tsconfig.json',
  'jsconfig.json',
  '.node_repl_history',
  '.noderc',
  'node.config.json',
  '.pnp.cjs',
  '.pnp.loader.mjs',
  'index.js',
  'server.js',
  'tasks/parley_decide.js',
  'tasks/parley_decide.mjs',
  'config.json',
  'parley.json',
  'parley.config.js',
  'tests',
  'Makefile',
  '.babelrc',
  '.swcrc',
  '.mcp.json',
  '.prettierrc',
  '.editorconfig',
  '.tool-versions',
];

export interface Planted {
  readonly cwd: string;
  // The markers that the planted scripts have written.
  executed(): string[];
}

// The working folder is two levels below the site's root; all three levels are full.
export function plant(site: Site, kind: Kind): Planted {
  const marks = join(site.root, 'executed');
  mkdirSync(marks, { recursive: true });
  const cwd = join(site.root, 'above', 'repository');
  mkdirSync(cwd, { recursive: true });
  const all = [...toolNames().flatMap(configNames), ...OTHERS];
  // A search for configuration stops at the first file: settings must not hide scripts.
  const names =
    kind === 'scripts'
      ? all.filter((name) => isScript(name))
      : kind === 'settings'
        ? all.filter((name) => !isScript(name))
        : all;
  for (const folder of [cwd, dirname(cwd)]) {
    for (const name of names) put(folder, name, kind, marks);
    if (kind === 'scripts') for (const tool of toolNames()) plantPackage(folder, tool, marks);
  }
  return { cwd, executed: () => readdirSync(marks) };
}

function isScript(name: string): boolean {
  return /\.[cm]?[jt]s$|^Makefile$/.test(name);
}

function put(folder: string, name: string, kind: Kind, marks: string): void {
  const path = join(folder, name);
  if (existsSync(path)) rmSync(path, { recursive: true });
  mkdirSync(dirname(path), { recursive: true });
  if (kind === 'scripts' || kind === 'settings') writeFileSync(path, contentOf(name, marks), { mode: 0o755 });
  else if (kind === 'broken') writeFileSync(path, '{"broken": [');
  else if (kind === 'endless') symlinkSync('/dev/zero', path);
  else if (kind === 'sockets') plantSocket(path);
  else linkSync(specialFile(marks, kind), path);
}

// Created once; all others are links to the same file.
function specialFile(marks: string, kind: 'pipes' | 'devices'): string {
  const path = `${marks}.${kind}`;
  if (!existsSync(path))
    execFileSync(kind === 'pipes' ? 'mkfifo' : 'mknod', kind === 'pipes' ? [path] : [path, 'c', '1', '5']);
  return path;
}

// A path to a socket must be short: it is created elsewhere, and linked. Nothing listens on it.
function plantSocket(path: string): void {
  const socket = join(process.env['TMPDIR'] ?? '/tmp', `parley-planted-${process.pid}.sock`);
  if (!existsSync(socket)) {
    const server = createServer().listen(socket);
    onTestFinished(() => new Promise<void>((resolve) => server.close(() => resolve())));
  }
  symlinkSync(socket, path);
}

function contentOf(name: string, marks: string): string {
  const mark = join(marks, name.replaceAll('/', '+'));
  if (name === 'package.json')
    return JSON.stringify({
      name: 'planted',
      main: 'index.js',
      scripts: { preinstall: `touch ${mark}` },
      ...Object.fromEntries(toolNames().map((tool) => [tool, { preset: './index.js' }])),
    });
  if (name === 'crontab') return '* * * * * parley_decide ?fill=1d\n';
  if (name.startsWith('.env'))
    return (
      `NODE_OPTIONS=--require=${marks}/no-such-file.js\nPGHOST=203.0.113.1\n` +
      `PARLEY_DATABASE_URL=postgresql://203.0.113.1/x\nPARLEY_DATA=${marks}\n`
    );
  if (name === '.npmrc') return `node-options=--require=./index.js\nscript-shell=./index.js\n`;
  if (name.endsWith('.pgpass')) return '*:*:*:*:planted\n';
  if (name.endsWith('pg_service.conf')) return '[parley]\nhost=203.0.113.1\n';
  if (/\.(?:json|toml|ya?ml)$|rc$/.test(name))
    return '{"extends":"./index.js","preset":"./index.js","plugins":["./index.js"],"require":["./index.js"]}';
  // The same effect as CommonJS and as an ES module.
  return `#!/usr/bin/env node
const mark = ({ writeFileSync }) => writeFileSync(${JSON.stringify(mark)}, process.argv.join(' '));
if (typeof require === 'function') mark(require('node:fs')); else import('node:fs').then(mark);
`;
}

function plantPackage(folder: string, tool: string, marks: string): void {
  const home = join(folder, 'node_modules', tool);
  mkdirSync(home, { recursive: true });
  writeFileSync(
    join(home, 'package.json'),
    JSON.stringify({
      name: tool,
      version: '999.0.0',
      main: './index.js',
      exports: { '.': './index.js', './*': './index.js' },
    }),
  );
  writeFileSync(join(home, 'index.js'), contentOf('index.js', marks));
}

// Devices need rights that not every machine grants.
export function canPlant(kind: Kind): boolean {
  if (kind !== 'devices') return true;
  const probe = join(process.env['TMPDIR'] ?? '/tmp', `parley-device-${process.pid}`);
  try {
    execFileSync('mknod', [probe, 'c', '1', '5'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  } finally {
    rmSync(probe, { force: true });
  }
}

const ASK = '[[ask Which database? | Postgres | SQLite]] [[done "ok"]]';

// Every command with arguments that make it do its work; before the first of them, one run waits and another has ended.
const COMMANDS: Readonly<Record<string, readonly (readonly string[])[]>> = {
  run: [
    ['rehearsal', ASK, '-i'],
    ['rehearsal', '[[done 1]]'],
    ['rehearsal', '[[done 1]]', '--scratch', '--json'],
  ],
  ls: [[], ['--json']],
  show: [['last'], ['last', '--json']],
  watch: [['last', '--no-follow']],
  logs: [['last']],
  verify: [['--all']],
  replay: [['last']],
  parse: [['--engine', 'codex']],
  config: [[], ['check'], ['set', 'slots', '2'], ['get', 'slots'], ['unset', 'slots']],
  continue: [['last', 'more']],
  fork: [['last', 'more']],
  retry: [['last']],
  reply: [['last', '1']],
  cancel: [['last']],
  rm: [['last']],
  doctor: [[], ['--json']],
  compact: [[]],
  demo: [[]],
  contract: [[]],
  completion: [['bash']],
  token: [['add', 'guest'], ['ls'], ['rm', 'guest']],
  migrate: [[]],
  import: [[]],
  inbox: [[]],
  link: [[]],
  audit: [[]],
  open: [[]],
  webhook: [['test', 'none']],
  help: [[], ['run']],
};

// Calls every command that `parley --help` lists; each must end by itself. A server is stopped as soon as it is ready.
export async function callEverything(
  site: Site,
  { cwd }: Planted,
  env: Readonly<Record<string, string>>,
): Promise<Ended[]> {
  const { stdout } = await ended(site, ['--help'], { cwd, env });
  const listed = [...stdout.slice(stdout.indexOf('Commands:')).matchAll(/^ {2}([a-z-]+) /gm)].map(
    ([, name = '']) => name,
  );
  expect(listed.length).toBeGreaterThan(15);
  const calls: Ended[] = [];
  for (const name of listed.toSorted((a, b) => order(a) - order(b))) {
    if (name === 'parley') continue;
    if (name === 'serve') calls.push(await serveOnce(site, { cwd, env }));
    else {
      expect(COMMANDS, `a line for "parley ${name}" in COMMANDS`).toHaveProperty(name);
      for (const args of COMMANDS[name] ?? []) calls.push(await ended(site, [name, ...args], { cwd, env }));
    }
  }
  return calls;
}

function order(name: string): number {
  const at = ['migrate', ...Object.keys(COMMANDS)].indexOf(name);
  return at === -1 ? 1000 : at;
}

async function ended(site: Site, args: readonly string[], options: CallOptions): Promise<Ended> {
  const running = start(site, args, options);
  return within(running.ended, `parley ${args.join(' ')}`, () => running.child.kill('SIGKILL'));
}

async function serveOnce(site: Site, options: CallOptions): Promise<Ended> {
  const running = start(site, ['serve', '--port', '0', '--json'], options);
  await running.waitFor('"type":"serving"');
  running.child.kill('SIGTERM');
  return within(running.ended, 'parley serve', () => running.child.kill('SIGKILL'));
}

async function within<T>(work: Promise<T>, what: string, giveUp: () => void): Promise<T> {
  let limit: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    limit = setTimeout(() => {
      giveUp();
      reject(new Error(`${what} did not end by itself`));
    }, LIMIT_MS);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(limit));
}

// parley doctor: what there is, what is missing, and what to do about it. It looks only.
import { execFile } from 'node:child_process';
import { accessSync, constants, existsSync, statfsSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Engine } from '../engines/engine.js';
import { probeEngine, type ProbeReport } from '../engines/probe.js';
import { ENGINES } from '../engines/registry.js';
import { findProgram, type FoundProgram } from '../host/engine-host.js';
import { findLogin } from '../host/find-login.js';
import { DEFAULT_SETTINGS, readSettings, type Settings } from '../host/settings.js';
import { RequestError } from '../run/request-error.js';
import { readServer } from '../service/server-file.js';
import { openForReading, readWriter } from '../store/sqlite/data-dir.js';
import { formatSize } from '../terminal/format-time.js';
import { safeText } from '../terminal/safe-text.js';
import { paint, type Ink } from '../terminal/style.js';
import { EXIT, type Io } from './io.js';
import { machineOf } from './open-writer.js';
import { dataDirOf, type DataOption } from './data-dir.js';
import { styleOf } from './style.js';
import { isAlive } from './writer-alive.js';
import { readVersion } from './version.js';

const VERSION_LIMIT_MS = 20_000;

interface Finding {
  readonly name: string;
  // missing: something does not work without it; note: good to know.
  readonly level: 'ok' | 'note' | 'missing';
  readonly text: string;
}

export async function doctorCommand(options: DataOption & { readonly json?: boolean }, io: Io): Promise<number> {
  const path = dataDirOf(options, io);
  const findings: Finding[] = [{ name: 'parley', level: 'ok', text: `${readVersion()} on Node ${process.versions.node}, ${io.machine.platform}` }, ...(await lookAtData(path))];
  const { settings, problem } = lookAtSettings(path);
  if (problem !== null) findings.push({ name: 'config', level: 'missing', text: problem });
  // One after the other: a CLI that starts is a heavy thing.
  for (const engine of ENGINES) {
    const found = findProgram(engine, machineOf(io), settings);
    findings.push(tellEngine(engine, found, await probe(engine, found, io), findLogin(engine, machineOf(io).user)));
  }
  const broken = findings.some(({ name, level }) => level === 'missing' && NEEDED.has(name));
  if (options.json) io.stdout.write(`${JSON.stringify({ type: 'doctor', ok: !broken, findings })}\n`);
  else io.stdout.write(render(findings, io));
  return broken ? EXIT.failed : EXIT.ok;
}

// The engines are looked for all the same.
function lookAtSettings(path: string): { settings: Settings; problem: string | null } {
  try {
    return { settings: readSettings(path), problem: null };
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    return { settings: DEFAULT_SETTINGS, problem: error.message };
  }
}

async function lookAtData(path: string): Promise<Finding[]> {
  const there = nearest(path);
  const { bavail, bsize } = statfsSync(there);
  const room = `${formatSize(bavail * bsize)} free`;
  if (!statSync(there).isDirectory()) return [{ name: 'data', level: 'missing', text: `${there} is not a directory; choose another with --data or PARLEY_DATA` }];
  if (!isWritable(there)) return [{ name: 'data', level: 'missing', text: `${path} cannot be written; choose another with --data or PARLEY_DATA` }];
  if (!existsSync(join(path, 'parley.db'))) return [{ name: 'data', level: 'ok', text: `${path} (nothing there yet), ${room}` }];
  try {
    const data = await openForReading(path);
    const waiting = (await data?.store.listPending({ limit: 1000 }))?.length ?? 0;
    await data?.close();
    const writer = readWriter(path);
    const server = readServer(path);
    const busy = writer && isAlive(writer) ? (server && isAlive(server) ? `, served at ${server.url}` : `, process ${writer.pid} is writing`) : '';
    return [{ name: 'data', level: 'ok', text: `${path}, ${waiting} waiting for an answer${busy}, ${room}` }];
  } catch (error) {
    return [{ name: 'data', level: 'missing', text: (error as Error).message }];
  }
}

// The first folder on the way up that exists.
function nearest(path: string): string {
  return existsSync(path) ? path : nearest(dirname(path));
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

function probe(engine: Engine, { program }: FoundProgram, io: Io): Promise<ProbeReport> {
  return probeEngine(engine, {
    find: async () => program?.at(-1) ?? null,
    run: (_bin, args) => new Promise((resolve) => {
      const [bin = '', ...before] = program ?? [];
      const env = { ...io.env } as NodeJS.ProcessEnv;
      execFile(bin, [...before, ...args], { timeout: VERSION_LIMIT_MS, env }, (error, stdout) => resolve(error ? null : stdout)).stdin?.end();
    }),
  });
}

function tellEngine({ name, home, handle }: Engine, { by }: FoundProgram, { bin, version, advice }: ProbeReport, login: string | null): Finding {
  if (bin === null) return { name, level: 'missing', text: by === 'PATH' ? (advice ?? '') : `${by} is not a program; ${advice ?? ''}` };
  const text = `${version ?? 'unknown version'} (${by === 'PATH' ? bin : by})`;
  const resume = `continues a conversation by ${handle.source}`;
  const notes = [advice, home.howToLogIn !== '' && login === null ? `not logged in: ${home.howToLogIn}` : null].filter((note) => note !== null);
  if (notes.length > 0) return { name, level: 'note', text: `${text}: ${notes.join('; ')}` };
  return { name, level: 'ok', text: `${text}${login === null ? '' : `, logged in by ${login}`}, ${resume}` };
}

// What keeps Parley from working at all is not what can be done without.
const NEEDED: ReadonlySet<string> = new Set(['data', 'config']);
const MARKS: Readonly<Record<Finding['level'], readonly [string, Ink]>> = { ok: ['✓', 'green'], note: ['!', 'yellow'], missing: ['–', 'dim'] };

function render(findings: readonly Finding[], io: Io): string {
  const style = styleOf(io);
  const lines = findings.map(({ name, level, text }) => `${paint(style, ...markOf(name, level))} ${name.padEnd(10)} ${safeText(text)}`);
  return `${lines.join('\n')}\n\nNo engine yet? The rehearsal plays one: parley run rehearsal "Set up the storage" --interactive\n`;
}

function markOf(name: string, level: Finding['level']): [Ink, string] {
  if (level === 'missing' && NEEDED.has(name)) return ['red', '✗'];
  const [mark, ink] = MARKS[level];
  return [ink, mark];
}

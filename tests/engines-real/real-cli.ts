// The real CLIs without Parley. Each test has its own private home with the offline configuration, a workspace and a
// scripted model. Nothing outside is touched, and no child outlives its test.
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterEach } from 'vitest';
import { ENGINE_PROGRAMS } from '../../scripts/install-engines.mjs';
import { isObject, parseJson, type JsonObject } from '../../src/kernel/json.js';
import { startClaudeModel } from '../models/claude-model.js';
import { startCodexModel } from '../models/codex-model.js';
import { startGeminiModel } from '../models/gemini-model.js';
import type { ModelServer } from '../models/model-server.js';
import { prepareOfflineHome, type McpServer, type RealEngine } from '../models/offline-config.js';
import { startOpencodeModel } from '../models/opencode-model.js';

const START = {
  claude: startClaudeModel,
  codex: startCodexModel,
  gemini: startGeminiModel,
  opencode: startOpencodeModel,
};
const ASK_SERVER = fileURLToPath(new URL('ask-server.mjs', import.meta.url));
// Far longer than any of them needs; then the child is killed, and the test sees the signal.
const LIMIT_MS = 90_000;

export interface Desk {
  readonly engine: RealEngine;
  readonly model: ModelServer;
  readonly home: string;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  // The arguments of ask_human.
  readonly asked: () => JsonObject[];
}

export interface Ran {
  readonly code: number | null;
  readonly signal: string | null;
  // The JSON objects of stdout.
  readonly lines: readonly JsonObject[];
  readonly stdout: string;
  readonly stderr: string;
}

const children = new Set<ChildProcess>();
const endings: (() => Promise<void> | void)[] = [];

afterEach(async () => {
  for (const child of children) await endChild(child);
  for (const end of endings.splice(0).toReversed()) await end();
});

export async function sitDown(engine: RealEngine): Promise<Desk> {
  const root = realpathSync(mkdtempSync(join(tmpdir(), `parley-${engine}-`)));
  endings.push(() => rmSync(root, { recursive: true, force: true, maxRetries: 5 }));
  const model = await START[engine]();
  endings.push(() => model.close());
  const [home, cwd, asked] = [join(root, 'home'), join(root, 'work'), join(root, 'asked.jsonl')];
  for (const folder of [home, cwd]) mkdirSync(folder);
  const mcp: McpServer = { name: 'desk', command: [process.execPath, ASK_SERVER], env: { ASKED: asked } };
  // The shell for the tools, and Node; nothing else of the environment.
  const env = {
    PATH: `${dirname(process.execPath)}:/usr/bin:/bin`,
    LANG: 'C.UTF-8',
    ...prepareOfflineHome(engine, home, model.url, mcp),
  };
  return {
    engine,
    model,
    home,
    cwd,
    env,
    asked: () => (existsSync(asked) ? toObjects(readFileSync(asked, 'utf8')) : []),
  };
}

export async function run(desk: Desk, args: readonly string[], prompt: string): Promise<Ran> {
  return finish(start(desk, args, prompt));
}

// The prompt is written to stdin, which is then closed: all of them read it to its end.
export function start({ engine, cwd, env }: Desk, args: readonly string[], prompt: string): ChildProcess {
  const [file = '', ...first] = ENGINE_PROGRAMS[engine];
  const child = spawn(file, [...first, ...args], {
    cwd,
    env,
    detached: true,
    timeout: LIMIT_MS,
    killSignal: 'SIGKILL',
  });
  children.add(child);
  child.stdin.on('error', () => {});
  child.stdin.end(prompt);
  return child;
}

async function finish(child: ChildProcess): Promise<Ran> {
  const closed = once(child, 'close') as Promise<[number | null, string | null]>;
  const [stdout, stderr, [code, signal]] = await Promise.all([read(child.stdout), read(child.stderr), closed]);
  children.delete(child);
  return { code, signal, stdout, stderr, lines: toObjects(stdout) };
}

// Includes all of its process group.
export async function endChild(child: ChildProcess): Promise<void> {
  children.delete(child);
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  process.kill(-child.pid, 'SIGKILL');
  await exited;
}

async function read(stream: NodeJS.ReadableStream | null): Promise<string> {
  return stream ? text(stream) : '';
}

function toObjects(jsonLines: string): JsonObject[] {
  return jsonLines.split('\n').map(parseJson).filter(isObject);
}

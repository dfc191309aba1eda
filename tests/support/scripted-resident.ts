// A resident engine in memory: the test says what it prints and how it responds. Its log, its feed of lines and its
// ledger of requests are the real ones; only the process is missing.
import { appendFileSync, existsSync, mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { ASK_TOOL } from '../../src/ask/ask-tool.js';
import type { NativeRequest } from '../../src/engines/native-request.js';
import type { Conversation, Resident } from '../../src/engines/resident.js';
import type { LogPaths } from '../../src/journal/turn-logs.js';
import { LineReader, type ReceivedLine } from '../../src/jsonrpc/received-line.js';
import { RequestLedger } from '../../src/jsonrpc/request-ledger.js';
import type { JsonObject } from '../../src/kernel/json.js';
import { LineFeed } from '../../src/process/line-feed.js';
import { SESSION } from './command-bench.js';

type Call =
  | { readonly converse: Conversation; readonly prompt: string }
  | { readonly answer: unknown; readonly to: unknown }
  | { readonly refuse: string; readonly to: unknown }
  | { readonly tell: string }
  | 'interrupt'
  | 'close';
type End = Awaited<Resident['ended']>;

// What the process does when it is called. It has recorded the call.
export interface Script {
  readonly converse?: (self: ScriptedResident) => void | Promise<void>;
  readonly answer?: (self: ScriptedResident) => void;
  readonly refuse?: (self: ScriptedResident) => void;
  readonly tell?: (self: ScriptedResident) => void;
  readonly interrupt?: (self: ScriptedResident) => void;
  readonly close?: (self: ScriptedResident) => void;
}

export class ScriptedResident implements Resident {
  readonly pid = 4711;
  readonly startTime = '99';
  readonly from: number;
  readonly ended: Promise<End>;
  readonly calls: Call[] = [];
  isAlive = true;
  readonly #logs: LogPaths;
  readonly #script: Script;
  readonly #ledger = new RequestLedger();
  readonly #feed: LineFeed;
  readonly #reader: LineReader;
  #resolveEnded: (end: End) => void = () => {};

  constructor(logs: LogPaths, script: Script) {
    this.#logs = logs;
    this.#script = script;
    for (const path of Object.values(logs)) {
      mkdirSync(dirname(path), { recursive: true });
      appendFileSync(path, '');
    }
    this.from = statSync(logs.stdout).size;
    this.ended = new Promise((resolve) => (this.#resolveEnded = resolve));
    this.#feed = new LineFeed({
      path: logs.stdout,
      published: this.from,
      recall: (line) => this.#ledger.recall(line),
    });
    this.#reader = new LineReader((line) => this.#receive(line), this.from);
  }

  // One message per line.
  print(...messages: readonly object[]): void {
    for (const message of messages) {
      const bytes = Buffer.from(`${JSON.stringify(message)}\n`);
      appendFileSync(this.#logs.stdout, bytes);
      this.#reader.push(bytes);
    }
  }

  complain(text: string): void {
    appendFileSync(this.#logs.stderr, text);
  }

  // No longer waits for the answer.
  withdraw(id: number): void {
    this.#ledger.close(id, 'withdrawn');
  }

  exit(exit: End['exit'] = { code: 0, signal: null }, error: Error | null = null): void {
    if (!this.isAlive) return;
    this.isAlive = false;
    this.#ledger.end();
    this.#feed.end(existsSync(this.#logs.stdout) ? statSync(this.#logs.stdout).size : 0);
    this.#resolveEnded({ exit, error });
  }

  async converse(converse: Conversation, prompt: string): Promise<void> {
    this.calls.push({ converse, prompt });
    await this.#script.converse?.(this);
  }

  lines(from: number, signal?: AbortSignal): AsyncIterable<ReceivedLine> {
    return this.#feed.read({ from, paces: true, ...(signal ? { signal } : {}) });
  }

  waitsFor({ message }: NativeRequest): boolean {
    return this.#ledger.has(message);
  }

  answer({ message: { id } }: NativeRequest, answer: JsonObject): void {
    this.#ledger.close(id, 'answered');
    this.calls.push({ answer, to: id });
    this.#script.answer?.(this);
  }

  refuse({ message: { id } }: NativeRequest, refuse: string): void {
    this.#ledger.close(id, 'answered');
    this.calls.push({ refuse, to: id });
    this.#script.refuse?.(this);
  }

  forgets({ message }: NativeRequest, signal: AbortSignal): Promise<void> {
    return this.#ledger.closed(message, signal);
  }

  async tell(tell: string): Promise<void> {
    this.calls.push({ tell });
    this.#script.tell?.(this);
  }

  async interrupt(): Promise<void> {
    this.calls.push('interrupt');
    this.#script.interrupt?.(this);
  }

  close(): Promise<End> {
    if (this.isAlive) {
      this.calls.push('close');
      this.#script.close?.(this);
      this.exit();
    }
    return this.ended;
  }

  #receive(line: ReceivedLine): void {
    if (line.message.type === 'request') this.#ledger.add(line.message, line);
    this.#feed.publish(line);
  }
}

const TURN = 'turn_1';

// What `codex app-server` prints.
export const serverSays = {
  hello: () => ({ id: 1, result: { userAgent: 'codex', codexHome: '/home' } }),
  thread: (id: string = SESSION) => ({ id: 2, result: { thread: { id } } }),
  turn: (id: string = TURN) => ({ method: 'turn/started', params: { threadId: SESSION, turn: { id } } }),
  message: (text: string, threadId: string = SESSION) => ({
    method: 'item/completed',
    params: { threadId, turnId: TURN, item: { type: 'agentMessage', id: 'msg', text } },
  }),
  command: () => ({
    method: 'item/started',
    params: { threadId: SESSION, turnId: TURN, item: { type: 'commandExecution', id: 'cmd', command: 'npm test' } },
  }),
  approval: (id: number, command = 'npm test') => ({
    id,
    method: 'item/commandExecution/requestApproval',
    params: { threadId: SESSION, turnId: TURN, itemId: 'cmd', kind: 'command', command, cwd: '/work' },
  }),
  // An approval whose answer does not end the turn.
  toolApproval: (id: number) => ({
    id,
    method: 'mcpServer/elicitation/request',
    params: {
      threadId: SESSION,
      turnId: TURN,
      serverName: 'mail',
      mode: 'form',
      message: 'Send it?',
      requestedSchema: { type: 'object', properties: {} },
      _meta: { codex_approval_kind: 'mcp_tool_call', tool_name: 'send', tool_params: { to: 'ann' } },
    },
  }),
  question: (id: number, prompt: string) => ({
    id,
    method: 'item/tool/call',
    params: { threadId: SESSION, turnId: TURN, tool: ASK_TOOL, arguments: { prompt } },
  }),
  unknown: (id: number) => ({ id, method: 'attestation/generate', params: { threadId: SESSION } }),
  end: (status = 'completed', id: string = TURN) => ({
    method: 'turn/completed',
    params: { threadId: SESSION, turn: { id, status } },
  }),
};

// session.json: the thread an instance works in, and what is needed to go on with it in another process. Whole or not there.
import { existsSync, readFileSync } from 'node:fs';
import { replaceFile } from '../engines/bring-files.js';
import { toTimestamp, type Clock } from '../kernel/clock.js';
import { asObject, asString, parseJson, type Json } from '../kernel/json.js';
import type { AgentFolder } from './agent-folder.js';
import type { AskForApproval, SandboxMode } from './protocol.js';

// What Codex does not restore when a thread is resumed, or not always.
export interface ThreadSettings {
  readonly cwd: string;
  readonly sandbox: SandboxMode;
  readonly approvalPolicy: AskForApproval;
}

const SANDBOXES: readonly string[] = ['read-only', 'workspace-write', 'danger-full-access'] satisfies SandboxMode[];

export class SessionFile {
  readonly #folder: AgentFolder;
  readonly #facts: { readonly instance: string; readonly codexHome: string; readonly userAgent: string };
  readonly #clock: Clock;
  readonly #threads: Map<string, ThreadSettings>;
  #threadId: string | null;

  constructor(folder: AgentFolder, facts: { readonly instance: string; readonly codexHome: string; readonly userAgent: string }, clock: Clock) {
    this.#folder = folder;
    this.#facts = facts;
    this.#clock = clock;
    const found = asObject(existsSync(folder.session) ? parseJson(readFileSync(folder.session, 'utf8')) : undefined);
    this.#threads = new Map(Object.entries(asObject(found?.threads) ?? {}).flatMap(([id, value]) => readSettings(id, value)));
    this.#threadId = asString(found?.threadId) ?? null;
  }

  // The last one in which a turn began.
  get threadId(): string | null {
    return this.#threadId;
  }

  settingsOf(threadId: string): ThreadSettings | undefined {
    return this.#threads.get(threadId);
  }

  // Only threads that Codex has stored: it stores one with its first turn, a fork at once.
  keep(threadId: string, settings: ThreadSettings, isCurrent: boolean): void {
    this.#threads.set(threadId, settings);
    if (isCurrent) this.#threadId = threadId;
    const current = this.#threadId ?? threadId;
    const { requests, events, stderr } = this.#folder.recording;
    const content = {
      ...this.#facts,
      threadId: current,
      cwd: this.#threads.get(current)?.cwd ?? settings.cwd,
      recording: { requests, events, stderr },
      threads: Object.fromEntries(this.#threads),
      updatedAt: toTimestamp(this.#clock.now()),
    };
    replaceFile(this.#folder.session, `${JSON.stringify(content, null, 2)}\n`);
  }
}

function readSettings(id: string, value: Json): [string, ThreadSettings][] {
  const { cwd, sandbox, approvalPolicy } = asObject(value) ?? {};
  if (typeof cwd !== 'string' || typeof sandbox !== 'string' || !SANDBOXES.includes(sandbox) || approvalPolicy === undefined) return [];
  return [[id, { cwd, sandbox: sandbox as SandboxMode, approvalPolicy: approvalPolicy as AskForApproval }]];
}

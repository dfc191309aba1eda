// session.json: the thread that an instance works in, and the settings to resume it in another process. Written
// atomically: a reader sees the whole file or none.
import { readTextSync } from '../files/read-file.js';
import { replaceFile } from '../files/replace-file.js';
import { toTimestamp, type Clock } from '../kernel/clock.js';
import { asObject, asString, parseJson, type Json } from '../kernel/json.js';
import type { AgentFolder } from './agent-folder.js';
import { AppServerError } from './app-server-error.js';
import { readSettings, type ThreadSettings } from './thread-settings.js';

// Enough for thousands of threads.
const MAX_BYTES = 16 * 1024 * 1024;

export class SessionFile {
  readonly #folder: AgentFolder;
  readonly #facts: { readonly instance: string; readonly codexHome: string };
  readonly #clock: Clock;
  readonly #threads: Map<string, ThreadSettings>;
  #threadId: string | null;
  // Whether a turn has started in the thread. Before that, Codex has not stored it and nothing can resume it.
  #isStored: boolean;
  #userAgent = '';

  constructor(folder: AgentFolder, facts: { readonly instance: string; readonly codexHome: string }, clock: Clock) {
    this.#folder = folder;
    this.#facts = facts;
    this.#clock = clock;
    const session = asObject(read(folder.session));
    this.#threads = new Map(
      Object.entries(asObject(session?.threads) ?? {}).flatMap(([id, value]) => {
        const settings = readSettings(value);
        return settings ? [[id, settings] as const] : [];
      }),
    );
    this.#threadId = asString(session?.threadId) ?? null;
    this.#isStored = session?.stored !== false;
  }

  // The last thread in which a turn started.
  get threadId(): string | null {
    return this.#isStored ? this.#threadId : null;
  }

  // Records the user agent that the server reported in its response to initialize.
  greeted(userAgent: string): void {
    this.#userAgent = userAgent;
  }

  settingsOf(threadId: string): ThreadSettings | undefined {
    return this.#threads.get(threadId);
  }

  // Records a thread that was just started; Codex stores it with its first turn. Never replaces a stored thread as the
  // current one.
  begin(threadId: string, settings: ThreadSettings): void {
    if (this.threadId === null) {
      this.#threadId = threadId;
      this.#isStored = false;
    }
    this.#write(threadId, settings);
  }

  // Records a thread that Codex has stored. Codex stores a thread with its first turn, and a fork at once.
  keep(threadId: string, settings: ThreadSettings): void {
    this.#write(threadId, settings);
  }

  // Records a thread that Codex has stored, and makes it the one that the next process resumes.
  keepAsCurrent(threadId: string, settings: ThreadSettings): void {
    this.#threadId = threadId;
    this.#isStored = true;
    this.#write(threadId, settings);
  }

  #write(threadId: string, settings: ThreadSettings): void {
    this.#threads.set(threadId, settings);
    const current = this.#threadId ?? threadId;
    const { requests, events, stderr } = this.#folder.recording;
    const content = {
      ...this.#facts,
      userAgent: this.#userAgent,
      threadId: current,
      stored: this.#isStored,
      cwd: this.#threads.get(current)?.cwd ?? settings.cwd,
      recording: { requests, events, stderr },
      threads: Object.fromEntries(this.#threads),
      updatedAt: toTimestamp(this.#clock.now()),
    };
    replaceFile(this.#folder.session, `${JSON.stringify(content, null, 2)}\n`);
  }
}

function read(path: string): Json | undefined {
  try {
    const text = readTextSync(path, { maxBytes: MAX_BYTES });
    return text === null ? undefined : parseJson(text);
  } catch (error) {
    throw new AppServerError(
      'bad_options',
      `${path} cannot be read: ${error instanceof Error ? error.message : String(error)}`,
      { cause: error },
    );
  }
}

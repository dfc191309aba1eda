// The dialect of the rehearsal: one JSON object a line on stdout. Whatever it tells of tools and files is only played.
import type { Json } from '../kernel/json.js';
import { writeBurst } from './burst.js';

export type Line =
  | { readonly type: 'session'; readonly session_id: string; readonly model?: string | undefined }
  // A piece of the message with that id; the whole of it follows.
  | { readonly type: 'delta'; readonly id: string; readonly text: string }
  | { readonly type: 'message'; readonly id: string; readonly text: string }
  | { readonly type: 'tool_started'; readonly id: string; readonly command: string }
  | {
      readonly type: 'tool_ended';
      readonly id: string;
      readonly status: 'completed' | 'declined';
      readonly exit_code?: number;
      readonly output: string;
    }
  | { readonly type: 'file'; readonly id: string; readonly path: string; readonly status: 'completed' | 'declined' }
  | { readonly type: 'ask'; readonly id: string; readonly prompt: string; readonly options: readonly string[] }
  | { readonly type: 'approve'; readonly id: string; readonly command: string }
  | { readonly type: 'usage'; readonly input_tokens: number; readonly output_tokens: number }
  | { readonly type: 'failed'; readonly message: string }
  // The turn ended well; nothing else says so.
  | { readonly type: 'end' };

const PAUSE_MS = 30;
const WORDS_A_PIECE = 3;
// There are no tokens here; this is how many there would be, roughly.
const CHARS_A_TOKEN = 4;

export interface VoiceDeps {
  // Both wait until the reader took the bytes.
  readonly print: (bytes: string | Buffer) => Promise<void>;
  readonly sleep: (ms: number) => Promise<void>;
}

export class Voice {
  readonly #deps: VoiceDeps;
  #items = 0;
  #chars = 0;

  constructor(deps: VoiceDeps) {
    this.#deps = deps;
  }

  get isSilent(): boolean {
    return this.#chars === 0;
  }

  session(sessionId: string, model: string | undefined): Promise<void> {
    return this.#line({ type: 'session', session_id: sessionId, model });
  }

  say(text: string): Promise<void> {
    this.#chars += text.length;
    return this.#line({ type: 'message', id: this.#nextId(), text });
  }

  // Word by word, as somebody who thinks.
  async stream(text: string): Promise<void> {
    this.#chars += text.length;
    const id = this.#nextId();
    for (const piece of pieces(text)) {
      await this.#line({ type: 'delta', id, text: piece });
      await this.#deps.sleep(PAUSE_MS);
    }
    await this.#line({ type: 'message', id, text });
  }

  // The done marker, as Parley asks every agent for it.
  done(result: Json): Promise<void> {
    return this.say(JSON.stringify({ done: true, result }));
  }

  async events(count: number, bytes: number): Promise<void> {
    const text = 'x'.repeat(bytes);
    this.#chars += count * bytes;
    await writeBurst(this.#deps.print, count, () => `{"type":"message","id":"${this.#nextId()}","text":"${text}"}\n`);
  }

  async tool(command: string): Promise<void> {
    const id = this.#nextId();
    await this.#line({ type: 'tool_started', id, command });
    await this.#line({ type: 'tool_ended', id, status: 'completed', exit_code: 0, output: '(only played, not run)\n' });
  }

  async declinedTool(command: string): Promise<void> {
    const id = this.#nextId();
    await this.#line({ type: 'tool_started', id, command });
    await this.#line({ type: 'tool_ended', id, status: 'declined', output: '(declined)\n' });
  }

  file(path: string, allowed: boolean): Promise<void> {
    return this.#line({ type: 'file', id: this.#nextId(), path, status: allowed ? 'completed' : 'declined' });
  }

  ask(prompt: string, options: readonly string[]): Promise<void> {
    return this.#line({ type: 'ask', id: this.#nextId(), prompt, options });
  }

  approve(command: string): Promise<void> {
    return this.#line({ type: 'approve', id: this.#nextId(), command });
  }

  fail(message: string): Promise<void> {
    return this.#line({ type: 'failed', message });
  }

  async end(prompt: string): Promise<void> {
    await this.#line({ type: 'usage', input_tokens: tokens(prompt.length), output_tokens: tokens(this.#chars) });
    await this.#line({ type: 'end' });
  }

  #line(line: Line): Promise<void> {
    return this.#deps.print(`${JSON.stringify(line)}\n`);
  }

  #nextId(): string {
    this.#items += 1;
    return `item_${this.#items}`;
  }
}

function tokens(chars: number): number {
  return Math.ceil(chars / CHARS_A_TOKEN);
}

function* pieces(text: string): Generator<string> {
  const words = text.split(/(?<=\s)/);
  for (let at = 0; at < words.length; at += WORDS_A_PIECE) yield words.slice(at, at + WORDS_A_PIECE).join('');
}

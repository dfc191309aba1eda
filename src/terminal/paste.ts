// Separates pasted text from typed keys by the marks that a terminal sets around a paste (bracketed paste). A paste is
// one text whatever it contains: an end mark inside the text does not turn the rest into keys, because whatever follows
// an end mark without a pause still belongs to the paste. A mark may arrive in pieces. The size is bounded.

export type PasteEvent =
  | { readonly kind: 'keys'; readonly text: string }
  // Line ends are \n. Null for more than MAX_PASTE_CHARS, of which nothing is kept.
  | { readonly kind: 'paste'; readonly text: string | null };

export const PASTE_ON = '\u001b[?2004h';
export const PASTE_OFF = '\u001b[?2004l';
export const MAX_PASTE_CHARS = 1_000_000;

const START = '\u001b[200~';
const END = '\u001b[201~';

export class PasteReader {
  #state: 'keys' | 'paste' | 'settling' = 'keys';
  // The beginning of an incomplete mark.
  #held = '';
  #text = '';
  #isTooLong = false;
  #isForgotten = false;

  // Whether held-back input depends on a pause: call pause() when no input arrived for a while.
  get waits(): boolean {
    return this.#state === 'settling' || (this.#state === 'keys' && this.#held !== '');
  }

  push(chunk: string): PasteEvent[] {
    const events: PasteEvent[] = [];
    let rest = this.#held + chunk;
    this.#held = '';
    while (rest !== '') {
      const mark = this.#state === 'paste' ? END : START;
      const at = rest.indexOf(mark);
      const end = at === -1 ? rest.length - openMark(rest, mark) : at;
      this.#add(rest.slice(0, end), events);
      if (at === -1) {
        this.#held = rest.slice(end);
        break;
      }
      this.#state = this.#state === 'paste' ? 'settling' : 'paste';
      rest = rest.slice(at + mark.length);
    }
    return events;
  }

  // Call after a pause: an ended paste is complete, and an incomplete mark was typed as keys.
  pause(): PasteEvent[] {
    if (this.#state === 'settling') return this.#end();
    if (this.#state !== 'keys' || this.#held === '') return [];
    const text = this.#held;
    this.#held = '';
    return [{ kind: 'keys', text }];
  }

  // Discards the input so far, including the rest of a paste that has started.
  forget(): void {
    if (this.#state === 'paste') this.#isForgotten = true;
    else this.#state = 'keys';
    if (this.#state === 'keys') this.#held = '';
    this.#text = '';
  }

  #add(text: string, events: PasteEvent[]): void {
    if (text === '' || this.#isForgotten) return;
    if (this.#state === 'keys') return void events.push({ kind: 'keys', text });
    this.#isTooLong ||= this.#text.length + text.length > MAX_PASTE_CHARS;
    this.#text = this.#isTooLong ? '' : this.#text + text;
  }

  #end(): PasteEvent[] {
    const isForgotten = this.#isForgotten;
    const text = this.#isTooLong ? null : (this.#text + this.#held).replaceAll(END, '').replaceAll(/\r\n?/g, '\n');
    this.#state = 'keys';
    this.#held = '';
    this.#text = '';
    this.#isTooLong = false;
    this.#isForgotten = false;
    return isForgotten ? [] : [{ kind: 'paste', text }];
  }
}

// How many characters at the end are the beginning of the mark.
function openMark(text: string, mark: string): number {
  for (let size = Math.min(mark.length - 1, text.length); size > 0; size -= 1) {
    if (text.endsWith(mark.slice(0, size))) return size;
  }
  return 0;
}

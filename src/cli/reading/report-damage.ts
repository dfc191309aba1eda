// Reports damage of a run on stderr. Limits the output, because a journal may be damaged in a thousand places.
import type { Message } from '../../kernel/message.js';
import { describePiece, PieceJoiner, type FoundPiece } from '../../journal/read-readable.js';
import type { Protocol } from '../../store/store.js';
import { safeText } from '../../terminal/safe-text.js';
import type { Io } from '../io.js';
import { sayMessage, texts } from '../language/language.js';

const SHOWN = 3;

export function reportDamage(damage: readonly Message[], io: Io): void {
  const report = new Report(io);
  for (const each of damage) report.add(each);
  report.end();
}

// Writes the first reports at once and counts the others.
class Report {
  readonly #io: Io;
  #reports = 0;

  constructor(io: Io) {
    this.#io = io;
  }

  add(damage: Message): void {
    this.#reports += 1;
    if (this.#reports <= SHOWN) this.#io.stderr.write(`${texts().say.damaged(safeText(sayMessage(damage)))}\n`);
  }

  end(): void {
    const more = this.#reports - SHOWN;
    if (more > 0) this.#io.stderr.write(`${texts().say.moreDamage(more)}\n`);
  }
}

// Reports the damage of a journal that is read page by page.
export class DamageReport {
  readonly #protocol: Protocol;
  readonly #report: Report;
  readonly #joiner = new PieceJoiner();

  constructor(protocol: Protocol, io: Io) {
    this.#protocol = protocol;
    this.#report = new Report(io);
  }

  add(pieces: readonly FoundPiece[]): void {
    for (const piece of pieces) this.#write(this.#joiner.add(piece));
  }

  end(): void {
    this.#write(this.#joiner.end());
    this.#report.end();
  }

  #write(piece: FoundPiece | null): void {
    if (piece) this.#report.add(describePiece(this.#protocol, piece));
  }
}

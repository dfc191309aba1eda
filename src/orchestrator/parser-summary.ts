// The parser's counts of one turn, as turn.ended carries them and as they are added up by engine and profile.
import type { ParserCounts } from '../engines/emitter.js';
import type { RaspData } from '../rasp/event.js';

export type ParserSummary = RaspData['lifecycle.turn.ended']['parser'];

export function summariseParser(counts: ParserCounts): ParserSummary {
  return { ...counts, warnings: { ...counts.warnings }, hit_rate: hitRate(counts.parsed, counts.units) };
}

// Nothing printed is neither a hit nor a miss.
export function hitRate(parsed: number, units: number): number | null {
  return units === 0 ? null : parsed / units;
}

export interface ProfileTotals {
  readonly engine: string;
  readonly profile: string;
  turns: number;
  units: number;
  parsed: number;
  fallbacks: number;
  hit_rate: number | null;
  warnings: Record<string, number>;
  // Completions judged unknown, by reason code.
  unknown: Record<string, number>;
}

// Adds up turns by engine and profile, from their turn.ended events.
export class ParserTotals {
  readonly #totals = new Map<string, ProfileTotals>();

  add(engine: string, ended: RaspData['lifecycle.turn.ended']): void {
    const { parser, completion } = ended;
    const key = `${engine} ${parser.profile}`;
    const known = this.#totals.get(key);
    const total = known ?? { engine, profile: parser.profile, turns: 0, units: 0, parsed: 0, fallbacks: 0, hit_rate: null, warnings: {}, unknown: {} };
    if (!known) this.#totals.set(key, total);
    total.turns += 1;
    total.units += parser.units;
    total.parsed += parser.parsed;
    total.fallbacks += parser.fallbacks;
    total.hit_rate = hitRate(total.parsed, total.units);
    for (const [code, count] of Object.entries(parser.warnings)) total.warnings[code] = (total.warnings[code] ?? 0) + count;
    if (completion.result === 'unknown') total.unknown[completion.reason_code] = (total.unknown[completion.reason_code] ?? 0) + 1;
  }

  list(): ProfileTotals[] {
    return [...this.#totals.values()];
  }
}

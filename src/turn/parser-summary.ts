// The parser's counts of one turn, in the form of turn.ended.
import type { ParserCounts } from '../engines/emitter.js';
import type { RaspData } from '../rasp/event.js';

export type ParserSummary = RaspData['lifecycle.turn.ended']['parser'];

export function summariseParser(counts: ParserCounts): ParserSummary {
  // A turn without output is neither a hit nor a miss.
  return {
    ...counts,
    warnings: { ...counts.warnings },
    hit_rate: counts.units === 0 ? null : counts.parsed / counts.units,
  };
}

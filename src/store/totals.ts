// Totals that the store maintains with each change, so that reading them does not cost more with more runs: how many
// runs, pending questions and deliveries are stored, by state, and the counts of all turns. A state total goes up and
// down. A total of turns never goes down, also when runs are deleted.
import { STATES, type RunState } from '../run/statechart.js';
import { isCount } from './stored-shapes.js';

export type TotalSubject = 'runs' | 'interactions' | 'deliveries' | 'turns';

// Of turns, `measure` is the name of a sum, or of a warning or a reason behind its prefix; of everything else it is a
// state, and engine and profile are empty.
export interface Total {
  readonly subject: TotalSubject;
  readonly engine: string;
  readonly profile: string;
  readonly measure: string;
  readonly count: number;
}

// A total that does not fit the stored rows.
export interface WrongTotal {
  readonly name: string;
  readonly total: number;
  // Of turns, the least that the total can be.
  readonly counted: number;
}

export type StateTotals = readonly Pick<Total, 'measure' | 'count'>[];

// Zero for a state without a row. A damaged total is zero as well; `parley doctor` reports it.
export function readState(totals: StateTotals, state: string): number {
  const count = totals.find(({ measure }) => measure === state)?.count ?? 0;
  return isCount(count) ? count : 0;
}

export function toRunCounts(totals: StateTotals): Record<RunState, number> {
  return Object.fromEntries(STATES.map((state) => [state, readState(totals, state)])) as Record<RunState, number>;
}

export function toDeliveryCounts(totals: StateTotals): { pending: number; given_up: number } {
  return { pending: readState(totals, 'pending'), given_up: readState(totals, 'given_up') };
}

// Compares the totals with those counted from the rows. Deleted runs have no rows, so turns may be more.
export function findWrongTotals(totals: readonly Total[], counted: readonly Total[]): WrongTotal[] {
  const stored = new Map(totals.map((each) => [nameOf(each), each]));
  const actual = new Map(counted.map((each) => [nameOf(each), each]));
  return [...new Set([...stored.keys(), ...actual.keys()])].toSorted().flatMap((name): WrongTotal[] => {
    const isOfTurns = (stored.get(name) ?? actual.get(name))?.subject === 'turns';
    const wrong = { name, total: stored.get(name)?.count ?? 0, counted: actual.get(name)?.count ?? 0 };
    const isRight = isCount(wrong.total) && (isOfTurns ? wrong.total >= wrong.counted : wrong.total === wrong.counted);
    return isRight ? [] : [wrong];
  });
}

function nameOf({ subject, engine, profile, measure }: Total): string {
  return [subject, engine, profile, measure].filter((part) => part !== '').join(' ');
}

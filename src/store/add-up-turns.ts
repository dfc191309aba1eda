// Adds up the counts of turns by engine and profile.
import type { ProfileTotals } from './store.js';

// `measure` is the name of a sum, or of a warning or a reason behind its prefix.
export interface TurnCount {
  readonly engine: string;
  readonly profile: string;
  readonly measure: string;
  readonly count: number;
}

// More than any turn counts. A larger count is damaged and left out of totals: sums of such numbers would overflow and
// fail the statement.
export const MOST_COUNTED = 1_000_000_000_000;

const MEASURES = ['turns', 'units', 'parsed', 'fallbacks'] as const;
export const WARNING = 'warning:';
export const UNKNOWN = 'unknown:';

export type TurnSum = Pick<ProfileTotals, 'engine' | 'profile' | (typeof MEASURES)[number]>;

export interface NamedCount {
  readonly engine: string;
  readonly profile: string;
  readonly name: string;
  readonly count: number;
}

interface TurnGroups {
  readonly sums: readonly TurnSum[];
  readonly warnings: readonly NamedCount[];
  readonly unknown: readonly NamedCount[];
}

export function addUpTurns({ sums, warnings, unknown }: TurnGroups): ProfileTotals[] {
  return groupByProfile([
    ...sums.flatMap(({ engine, profile, ...sum }) =>
      MEASURES.map((measure) => ({ engine, profile, measure, count: sum[measure] })),
    ),
    ...warnings.map(({ name, ...rest }) => ({ ...rest, measure: WARNING + name })),
    ...unknown.map(({ name, ...rest }) => ({ ...rest, measure: UNKNOWN + name })),
  ]);
}

export function groupByProfile(counts: readonly TurnCount[]): ProfileTotals[] {
  const groups = new Map<string, { engine: string; profile: string; measures: Map<string, number> }>();
  for (const { engine, profile, measure, count } of counts) {
    const key = JSON.stringify([engine, profile]);
    const group = groups.get(key) ?? { engine, profile, measures: new Map<string, number>() };
    group.measures.set(measure, (group.measures.get(measure) ?? 0) + count);
    groups.set(key, group);
  }
  return [...groups].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, group]) => totalsOf(group));
}

function totalsOf({
  engine,
  profile,
  measures,
}: {
  engine: string;
  profile: string;
  measures: ReadonlyMap<string, number>;
}): ProfileTotals {
  const [turns = 0, units = 0, parsed = 0, fallbacks = 0] = MEASURES.map((measure) => measures.get(measure) ?? 0);
  const named = (prefix: string): Record<string, number> =>
    Object.fromEntries(
      [...measures]
        .filter(([measure]) => measure.startsWith(prefix))
        .map(([measure, count]): [string, number] => [measure.slice(prefix.length), count])
        .toSorted(([a], [b]) => (a < b ? -1 : 1)),
    );
  return {
    engine,
    profile,
    turns,
    units,
    parsed,
    fallbacks,
    hit_rate: units === 0 ? null : parsed / units,
    warnings: named(WARNING),
    unknown: named(UNKNOWN),
  };
}

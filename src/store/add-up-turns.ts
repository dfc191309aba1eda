// The sums over turns by engine and profile, as a store has grouped them, put together.
import type { ProfileTotals } from './store.js';

export type TurnSum = Pick<ProfileTotals, 'engine' | 'profile' | 'turns' | 'units' | 'parsed' | 'fallbacks'>;

export interface NamedCount {
  readonly engine: string;
  readonly profile: string;
  readonly name: string;
  readonly count: number;
}

export function addUpTurns(sums: readonly TurnSum[], warnings: readonly NamedCount[], unknown: readonly NamedCount[]): ProfileTotals[] {
  return sums.map(({ engine, profile, turns, units, parsed, fallbacks }) => {
    const countsOf = (counts: readonly NamedCount[]) => Object.fromEntries(counts.filter((each) => each.engine === engine && each.profile === profile).map(({ name, count }) => [name, count]));
    return { engine, profile, turns, units, parsed, fallbacks, hit_rate: units === 0 ? null : parsed / units, warnings: countsOf(warnings), unknown: countsOf(unknown) };
  });
}

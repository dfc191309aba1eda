// Finds runs by parts of their ids, by an index, however many runs there are.

// How many characters of the end of an id are indexed: people call a run by them, because ids of the same time begin
// alike. The migrations of both stores have the number in their indexes.
export const TAIL_CHARS = 6;

export interface RunFinder {
  // The ids that end with one of these texts, each of TAIL_CHARS characters.
  listByTail(tails: readonly string[]): Promise<string[]>;
  // The ids that begin with this text, newest first.
  listByPrefix(prefix: string, limit: number): Promise<string[]>;
}

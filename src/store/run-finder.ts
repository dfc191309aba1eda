// Finds runs by parts of their ids with an index, for any number of runs.

// How many characters at the end of an id are indexed: people use the end, because ids of the same time start with the
// same characters. The migrations of both stores contain this number.
export const TAIL_CHARS = 6;

export interface RunFinder {
  // Returns the ids that end with one of these texts, each of TAIL_CHARS characters.
  listByTail(tails: readonly string[]): Promise<string[]>;
  // Returns the ids that start with this text, newest first.
  listByPrefix(prefix: string, limit: number): Promise<string[]>;
}

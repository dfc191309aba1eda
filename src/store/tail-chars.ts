// How many characters of the end of a run's id are indexed: people call a run by them, because ids of the same time begin
// alike. The migrations of both stores have the number in their indexes.
export const TAIL_CHARS = 6;

// The types of figures.mjs, for its test.
export function exponentOf(points: readonly (readonly [number, number])[], least?: number): number | null;

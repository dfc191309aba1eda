// The types of stalls.mjs, for its test.
export function watch(work: () => unknown): Promise<{ readonly ms: number; readonly stall: number }>;

// The types of plot.mjs, for its test.
export interface Series {
  readonly name: string;
  readonly points: readonly { readonly x: number; readonly y: number }[];
}
export function curves(
  title: string,
  series: readonly Series[],
  axes: { readonly x: string; readonly y: string },
): string;
export function powersAround(values: readonly number[]): number[];
export function spreadOut(positions: readonly number[]): number[];

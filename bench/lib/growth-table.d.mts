// The types of growth-table.mjs, for its test.
export interface GrowthRow {
  readonly name: string;
  readonly unit: string;
  readonly cells: readonly { readonly size: number; readonly median: number; readonly stall?: number }[];
}
export function growthOf(row: GrowthRow): number | null;
export function isGrowing(row: GrowthRow): boolean;
export function cellOf(
  rows: readonly GrowthRow[],
  name: string,
  figure?: 'median' | 'stall' | 'exponent',
  size?: number,
): number;
export function worstStall(rows: readonly GrowthRow[]): {
  readonly name: string;
  readonly size: number;
  readonly stall: number;
};
export function markdownTable(rows: readonly GrowthRow[], of: string): string[];
export function plainTable(rows: readonly GrowthRow[], of: string): string[];

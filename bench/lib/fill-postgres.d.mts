// The types of fill-postgres.mjs, for the test that counts the pages of each query.
export function fillPostgres(
  store: { recountTotals(): Promise<void> },
  url: string,
  options: { readonly count: number; readonly place: string },
): Promise<void>;

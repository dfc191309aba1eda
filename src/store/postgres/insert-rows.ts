// Rows of one table as statements that insert them, as many at a time as a statement has parameters for.

// By its type alone a column is the member that is called like it; else it is what is read from the row.
export type Columns<R> = Readonly<Record<string, string | readonly [type: string, read: (row: R) => unknown]>>;

const MOST_PARAMETERS = 65_535;

export function* insertStatements<R extends object>(
  table: string,
  columns: Columns<R>,
  rows: readonly R[],
  rest = '',
): Generator<{ readonly text: string; readonly values: unknown[] }> {
  const readers = Object.entries(columns).map(([name, column]) =>
    typeof column === 'string' ? ([column, (row: R) => row[name as keyof R] as unknown] as const) : column,
  );
  const most = Math.floor(MOST_PARAMETERS / readers.length);
  for (let from = 0; from < rows.length; from += most) {
    const values: unknown[] = [];
    const lines = rows
      .slice(from, from + most)
      .map((row) => `(${readers.map(([type, read]) => `$${values.push(read(row))}::${type}`).join(', ')})`);
    yield {
      text: `INSERT INTO parley.${table} (${Object.keys(columns).join(', ')}) VALUES ${lines.join(', ')} ${rest}`,
      values,
    };
  }
}

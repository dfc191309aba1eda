// Builds the statements that insert rows into a table, each with as many rows as it has parameters for.

export interface Table<R> {
  readonly name: string;
  readonly columns: Columns<R>;
  // The ON CONFLICT clause, if there is one.
  readonly onConflict?: string;
}

// A column that is only a type has the value of the member with its name; otherwise `read` computes its value.
type Columns<R> = Readonly<Record<string, string | readonly [type: string, read: (row: R) => unknown]>>;

const MOST_PARAMETERS = 65_535;

export function* insertStatements<R extends object>(
  { name: table, columns, onConflict = '' }: Table<R>,
  rows: readonly R[],
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
      text: `INSERT INTO parley.${table} (${Object.keys(columns).join(', ')}) VALUES ${lines.join(', ')} ${onConflict}`,
      values,
    };
  }
}

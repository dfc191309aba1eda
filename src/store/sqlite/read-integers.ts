// The drivers throw for an integer outside ±2^53, and with it fail the whole statement. Statements read such an integer
// as the nearest number instead. It is no safe integer, so the code that reads the row can tell that this row is
// damaged.
import type { Database, Statement } from './open-database.js';

type Row = Record<string, unknown>;

const TOO_LARGE = /too large to be represented/i;

// Changes what `prepare` returns, for all statements of the connection.
export function readAllIntegers(db: Database): void {
  const prepare = db.prepare.bind(db);
  replace(db, 'prepare', (sql, ...rest) => tolerate(prepare(sql, ...rest)));
}

function tolerate(statement: Statement): Statement {
  const get = statement.get.bind(statement);
  const all = statement.all.bind(statement);
  const iterate = statement.iterate.bind(statement);
  // Most rows have no such integer, so the slower way is used only after the driver has refused one.
  let readsBigInts = false;
  const readBigInts = (): void => {
    statement.setReadBigInts(true);
    readsBigInts = true;
  };
  const read = <T>(work: () => T, convert: (value: T) => T): T => {
    try {
      return readsBigInts ? convert(work()) : work();
    } catch (error) {
      if (readsBigInts || !(error instanceof Error && TOO_LARGE.test(error.message))) throw error;
    }
    readBigInts();
    return convert(work());
  };
  replace(statement, 'get', (...values) => read(() => get(...values), toNumbers));
  replace(statement, 'all', (...values) =>
    read(
      () => all(...values),
      (rows) => rows.map(toNumbers),
    ),
  );
  // A yielded row cannot be taken back, so iteration always uses the slower way.
  replace(statement, 'iterate', function* (...values) {
    readBigInts();
    for (const row of iterate(...values)) yield toNumbers(row as unknown);
  });
  return statement;
}

// Methods of the drivers cannot be assigned.
function replace<T extends object, K extends keyof T>(object: T, name: K, value: T[K]): void {
  Object.defineProperty(object, name, { value, configurable: true, writable: true });
}

function toNumbers<T>(row: T): T {
  if (typeof row !== 'object' || row === null) return row;
  for (const [name, value] of Object.entries(row)) if (typeof value === 'bigint') (row as Row)[name] = Number(value);
  return row;
}

// Explains why SQLite cannot read parley.db: the problem in plain words and a way out, followed by SQLite's message in
// brackets.

export const RESTORE =
  'Stop Parley and restore parley.db from a backup (docs/guides/backup-and-restore.md, "Restore").';

// Null: the message is not about damage of the file.
export function explainSqlite(message: string): string | null {
  const detail = `(SQLite: ${message})`;
  if (/not a database/i.test(message))
    return `parley.db is not a database, or its beginning was overwritten. ${RESTORE} ${detail}`;
  if (!isDamage(message)) return null;
  return (
    `parley.db is damaged: a part of the file is missing or was overwritten. ${RESTORE} Without a backup, ` +
    `sqlite3 parley.db .recover salvages what it can. ${detail}`
  );
}

export function isDamage(message: string): boolean {
  return /malformed|not a database|corrupt/i.test(message);
}

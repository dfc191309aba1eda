// What people are told when SQLite cannot read parley.db: the problem in plain words and a way out; the words of SQLite
// follow in brackets.

export const RESTORE = 'Stop Parley and restore parley.db from a backup (docs/scale.md, "Backup and restore").';

// Null: the message is about something else than damage of the file.
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

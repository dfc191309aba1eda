// Explains why SQLite cannot read parley.db: the problem in plain words and a way out, followed by SQLite's message in
// brackets.
import type { Phrase } from '../../kernel/fill-template.js';
import { phrase } from '../../messages/phrase.js';

export const RESTORE = phrase('restore');

// Null: the message is not about damage of the file.
export function explainSqlite(message: string): Phrase | null {
  if (/not a database/i.test(message)) return phrase('sqlite_no_database', { restore: RESTORE, reason: message });
  return isDamage(message) ? phrase('sqlite_damaged', { restore: RESTORE, reason: message }) : null;
}

export function isDamage(message: string): boolean {
  return /malformed|not a database|corrupt/i.test(message);
}

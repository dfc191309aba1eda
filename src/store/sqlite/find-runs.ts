// Finds runs by the folders they use. Without a named index, SQLite reads the rows of all runs of a state, because it
// cannot know how few runs use a folder.
import type { Database } from './open-database.js';

export function isKnown(db: Database, requestId: string): boolean {
  return db.prepare('SELECT 1 FROM runs WHERE request_id = ?').get(requestId) !== undefined;
}

// A run that has not ended and lives in this home.
export function findAtWorkIn(db: Database, home: string | null): string | null {
  const row = db
    .prepare(`SELECT run_id FROM runs INDEXED BY runs_at_work_by_home
      WHERE home = ? AND status IN ('queued', 'running', 'waiting_user') LIMIT 1`)
    .get(home) as { run_id: string } | undefined;
  return row?.run_id ?? null;
}

export function findInHome(db: Database, home: string | null, except: string): string | null {
  const row = db
    .prepare(`SELECT run_id FROM runs INDEXED BY runs_by_home WHERE home = ? AND run_id <> ? ORDER BY run_id LIMIT 1`)
    .get(home, except) as { run_id: string } | undefined;
  return row?.run_id ?? null;
}

export function findAtWork(db: Database, cwd: string, except = ''): string | null {
  const row = db
    .prepare(`SELECT run_id FROM runs INDEXED BY runs_by_cwd
      WHERE status IN ('queued', 'running', 'waiting_user') AND cwd = ? AND run_id <> ? ORDER BY run_id LIMIT 1`)
    .get(cwd, except) as { run_id: string } | undefined;
  return row?.run_id ?? null;
}

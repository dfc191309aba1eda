// parley import: copies the runs and the named tokens of a data directory into the database that PARLEY_DATABASE_URL
// names. The directory and its files do not change; a server of the directory with that database continues to use the
// files. After an interruption, run it again.
import { phrase } from '../../messages/phrase.js';
import { constants, existsSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { readSettings } from '../../settings/read-settings.js';
import { refusal } from '../../run/request-error.js';
import type { RunImport } from '../../store/postgres/import-runs.js';
import { listTokens } from '../../service/access/tokens.js';
import { siteAt, type Site } from '../../store/postgres/hosts/site.js';
import { lockDataDir } from '../../store/sqlite/data-dir.js';
import { RunExport } from '../../store/sqlite/export-runs.js';
import { checkFolder, dataDirOf, type DataOption } from '../data-dir.js';
import { EXIT, type Io } from '../io.js';
import { texts } from '../language/language.js';
import { databaseUrl } from '../open-data.js';
import { writerOf } from '../writer-of.js';

// How many runs are named; --json names all.
const NAMED = 10;

interface Tally {
  copied: number;
  known: number;
  readonly conflict: string[];
  readonly broken: string[];
}

export async function importCommand(options: DataOption & { readonly json?: boolean }, io: Io): Promise<number> {
  const url = databaseUrl(io);
  if (url === null) throw refusal('INVALID_ARGUMENT.import_database');
  const path = dataDirOf(options, io);
  checkFolder(path, constants.R_OK | constants.W_OK | constants.X_OK);
  if (!existsSync(join(path, 'parley.db'))) throw refusal('INVALID_ARGUMENT.import_empty', { path });
  const { cluster } = readSettings(path);
  const { RunImport: Target } = await import('../../store/postgres/import-runs.js');
  const release = await lockDataDir(path, writerOf(io));
  try {
    const source = await RunExport.open(path);
    try {
      refuseMoving(source.listMoving(), path);
      const target = await Target.open(url);
      try {
        const real = realpathSync(path);
        const progress = options.json ? () => {} : progressOf(source.count(), io);
        const tally = await copyAll(source, target, { site: siteAt(real, cluster.files), progress });
        const trace = {
          at: io.clock.now(),
          actor: { kind: 'user', name: io.machine.userName } as const,
          address: null,
        };
        for (const token of listTokens(real)) await target.importToken(token, trace);
        report(tally, { path: real, database: target.name, json: options.json ?? false }, io);
        return EXIT.ok;
      } finally {
        await target.close();
      }
    } finally {
      source.close();
    }
  } finally {
    release();
  }
}

// A running turn belongs to the process that runs it, and a queued run to the process that will start it.
function refuseMoving(moving: readonly string[], path: string): void {
  if (moving.length === 0) return;
  throw refusal('RUN_NOT_ENDED.import', { path, runs: named(moving) });
}

async function copyAll(
  source: RunExport,
  target: RunImport,
  { site, progress }: { readonly site: Site; readonly progress: (done: number) => void },
): Promise<Tally> {
  const tally: Tally = { copied: 0, known: 0, conflict: [], broken: [] };
  let done = 0;
  try {
    for (const stored of source.runs()) {
      const { run_id: runId } = stored.run;
      const outcome = await target.importRun(stored, () => source.segments(runId), site);
      if (outcome === 'copied' || outcome === 'known') tally[outcome] += 1;
      else tally[outcome].push(runId);
      progress((done += 1));
    }
    await target.importStrays(source.strayDeliveries());
    await target.importDeletedTurns(source.deletedTurns(), site);
    return tally;
  } finally {
    progress(0);
  }
}

// Shows the progress on a terminal only, in one line that 0 erases.
function progressOf(total: number, io: Io): (done: number) => void {
  if (!io.terminal.stderr) return () => {};
  const step = Math.ceil(total / 100);
  return (done) => {
    if (done === 0) io.stderr.write('\r\u001b[2K');
    else if (done % step === 0) io.stderr.write(`\r\u001b[2K${texts().import.progress(done, total)}`);
  };
}

interface ReportOptions {
  readonly path: string;
  // The name of the database for people.
  readonly database: string;
  readonly json: boolean;
}

function report({ copied, known, conflict, broken }: Tally, { path, database, json }: ReportOptions, io: Io): void {
  const { import: t } = texts();
  if (json)
    io.stdout.write(
      `${JSON.stringify({ type: 'import', data: path, copied, known, refused: [...conflict, ...broken] })}\n`,
    );
  else io.stdout.write(`${known === 0 ? t.copied(copied, database) : t.copiedButKnown(copied, database, known)}\n`);
  const problems = [
    ...(conflict.length === 0 ? [] : [phrase('other_content', { runs: named(conflict) })]),
    ...(broken.length === 0 ? [] : [phrase('not_as_written', { runs: named(broken) })]),
  ];
  const [first, second] = problems;
  if (first === undefined) return;
  const refused = conflict.length + broken.length;
  throw refusal('IMPORT_INCOMPLETE', {
    count: refused === 1 ? phrase('one_run') : phrase('runs_count', { count: refused }),
    problem: second === undefined ? first : phrase('and_problem', { first, second }),
  });
}

function named(runs: readonly string[]): string {
  const { more, names } = texts().import;
  return [...runs.slice(0, NAMED), ...(runs.length > NAMED ? [more(runs.length - NAMED)] : [])].join(names);
}

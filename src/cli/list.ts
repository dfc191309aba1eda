// parley ls: the runs there are, newest first.
import { listReadable } from '../orchestrator/every-run.js';
import { RequestError } from '../run/request-error.js';
import { STATES, type RunState } from '../run/statechart.js';
import type { RunFilter, RunRecord, Store } from '../store/store.js';
import { formatAge } from '../terminal/format-time.js';
import type { Ink } from '../terminal/style.js';
import { renderTable, type Column } from '../terminal/table.js';
import { EXIT, LineWriter, type Io } from './io.js';
import { dataDirOf, openReader, type DataOption } from './data-dir.js';
import { styleOf } from './style.js';
import { runLine } from './tell.js';

export interface ListOptions extends DataOption {
  readonly status?: string;
  readonly engine?: string;
  readonly label?: string;
  readonly limit: number;
  readonly quiet?: boolean;
  readonly json?: boolean;
}

const INKS: Readonly<Record<string, Ink>> = { waiting_user: 'yellow', failed: 'red', succeeded: 'green', running: 'cyan', canceled: 'dim' };
const COLUMNS: readonly Column[] = [
  { header: 'RUN', whole: true },
  { header: 'STATUS', whole: true, ink: (status) => INKS[status.replace(' (overdue)', '')] ?? null },
  { header: 'ENGINE', droppable: true },
  { header: 'AGE', align: 'right', whole: true },
  { header: 'PROMPT', droppable: true },
];

export async function listCommand(options: ListOptions, io: Io): Promise<number> {
  const filter = filterOf(options);
  const data = await openReader(options, io);
  if (!data) return sayNothing(options, io, `no runs yet in ${dataDirOf(options, io)}\n  parley run rehearsal "Set up the storage" --interactive    starts one`);
  try {
    const { runs } = await listReadable(data.store, filter, (runId, { message }) => io.stderr.write(`run ${runId} is left out, its row is damaged: ${message}\n`));
    if (options.json || options.quiet) await printLines(data.store, runs, options, io);
    else if (runs.length === 0) return sayNothing(options, io, 'no such runs');
    else io.stdout.write(renderTable(await Promise.all(runs.map((run) => rowOf(data.store, run, io.clock.now()))), COLUMNS, styleOf(io)));
    return EXIT.ok;
  } finally {
    await data.close();
  }
}

function filterOf({ status, engine, label, limit }: ListOptions): RunFilter {
  if (status !== undefined && !(STATES as readonly string[]).includes(status)) throw new RequestError('INVALID_ARGUMENT', `there is no status "${status}"; the statuses are ${STATES.join(', ')}`);
  const at = label?.indexOf('=') ?? 0;
  if (label !== undefined && at < 1) throw new RequestError('INVALID_ARGUMENT', `--label needs name=value, not "${label}"`);
  return {
    limit,
    ...(status === undefined ? {} : { status: status as RunState }),
    ...(engine === undefined ? {} : { engine }),
    ...(label === undefined ? {} : { label: { key: label.slice(0, at), value: label.slice(at + 1) } }),
  };
}

function sayNothing({ json, quiet }: ListOptions, io: Io, text: string): number {
  if (!json && !quiet) io.stderr.write(`${text}\n`);
  return EXIT.ok;
}

async function printLines(store: Store, runs: readonly RunRecord[], { json }: ListOptions, io: Io): Promise<void> {
  const writer = new LineWriter(io);
  for (const run of runs) writer.addLine(json ? runLine(run, await store.loadPending(run.run_id), io.clock.now()) : run.run_id);
  await writer.flush();
}

async function rowOf(store: Store, run: RunRecord, now: number): Promise<string[]> {
  const pending = run.status === 'waiting_user' ? await store.loadPending(run.run_id) : null;
  const status = pending && now > pending.due_at ? `${run.status} (overdue)` : run.status;
  return [run.run_id, status, run.spec.engine, formatAge(now - run.created_at), run.spec.prompt];
}

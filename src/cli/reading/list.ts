// parley ls: lists runs, newest first.
import { unlessDamaged } from '../../kernel/stored-json.js';
import { listReadable } from '../../journal/every-run.js';
import { viewRunSummary } from '../../journal/run-view.js';
import { refusal } from '../../run/request-error.js';
import { STATES, type RunState } from '../../run/statechart.js';
import type { RunFilter } from '../../store/store.js';
import type { InteractionSummary, RunSummary } from '../../store/summary-reader.js';
import { formatAge } from '../../terminal/format-time.js';
import type { Ink } from '../../terminal/style.js';
import { renderTable, type Column } from '../../terminal/table.js';
import { EXIT, LineWriter, type Io } from '../io.js';
import { dataDirOf, openReader, type DataOption } from '../data-dir.js';
import { shortenIds } from './find-run.js';
import { styleOf } from '../style.js';
import { sayError, texts } from '../language/language.js';

export interface ListOptions extends DataOption {
  readonly status?: string;
  readonly engine?: string;
  readonly label?: string;
  readonly limit: number;
  readonly quiet?: boolean;
  readonly json?: boolean;
}

interface Listed {
  readonly run: RunSummary;
  readonly pending: InteractionSummary | null;
}

const INKS: Readonly<Record<string, Ink>> = {
  waiting_user: 'yellow',
  failed: 'red',
  succeeded: 'green',
  running: 'cyan',
  canceled: 'dim',
};
// Built for each table: the language is chosen after this module is loaded.
function columns(): readonly Column[] {
  const { listHeaders, statuses, overdue } = texts().say;
  const inks = new Map(
    Object.entries(INKS).flatMap(([status, ink]) => {
      const name = statuses[status as RunState];
      return [[name, ink] as const, [overdue(name), ink] as const];
    }),
  );
  return [
    { header: listHeaders.run, whole: true },
    { header: listHeaders.status, whole: true, ink: (status) => inks.get(status) ?? null },
    { header: listHeaders.engine, droppable: true },
    { header: listHeaders.age, align: 'right', whole: true },
    { header: listHeaders.prompt, droppable: true },
  ];
}

export async function listCommand(options: ListOptions, io: Io): Promise<number> {
  const filter = filterOf(options);
  const data = await openReader(options, io);
  if (!data) return sayNothing(options, io, texts().say.noRunsIn(dataDirOf(options, io)));
  try {
    const leaveOut = (runId: string, error: Error): void =>
      void io.stderr.write(`${texts().say.notListed(runId, sayError(error))}\n`);
    const { runs } = await listReadable(data.store, filter, leaveOut);
    const listed: Listed[] = [];
    for (const run of runs) {
      const pending =
        run.status === 'waiting_user' ? data.store.summaries.loadPendingInteraction(run.run_id) : Promise.resolve(null);
      const one = await unlessDamaged(
        pending.then((question) => ({ run, pending: question })),
        (damage) => leaveOut(run.run_id, damage),
      );
      if (one) listed.push(one);
    }
    if (options.json || options.quiet) await printLines(listed, options, io);
    else if (listed.length === 0)
      return sayNothing(options, io, Object.keys(filter).length > 1 ? texts().say.noMatch : texts().say.noRuns);
    else {
      const names = await shortenIds(
        data.store,
        listed.map(({ run }) => run.run_id),
      );
      io.stdout.write(
        renderTable(
          listed.map((each) => rowOf(each, names, io.clock.now())),
          columns(),
          styleOf(io),
        ),
      );
    }
    return EXIT.ok;
  } finally {
    await data.close();
  }
}

function filterOf({ status, engine, label, limit }: ListOptions): RunFilter {
  if (status !== undefined && !(STATES as readonly string[]).includes(status))
    throw refusal('INVALID_ARGUMENT.status', { status, statuses: STATES.join(', ') });
  const at = label?.indexOf('=') ?? 0;
  if (label !== undefined && at < 1) throw refusal('INVALID_ARGUMENT.pair', { option: '--label', value: label });
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

async function printLines(listed: readonly Listed[], { json }: ListOptions, io: Io): Promise<void> {
  const writer = new LineWriter(io);
  for (const { run, pending } of listed)
    writer.addLine(
      json ? JSON.stringify({ type: 'run', run: viewRunSummary(run, pending, io.clock.now()) }) : run.run_id,
    );
  await writer.flush();
}

function rowOf({ run, pending }: Listed, names: ReadonlyMap<string, string>, now: number): string[] {
  const { statuses, overdue } = texts().say;
  const name = statuses[run.status];
  const status = pending && now > pending.due_at ? overdue(name) : name;
  return [
    names.get(run.run_id) ?? run.run_id,
    status,
    run.spec.engine,
    formatAge(now - run.created_at),
    run.spec.prompt,
  ];
}

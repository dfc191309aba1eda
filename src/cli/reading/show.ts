// parley show and parley watch: a run as it is now, or from a cursor on until it has ended.
import { nameInLine } from '../../kernel/visible-text.js';
import { headOf, loadReadable, salvageRun } from '../../journal/load-run.js';
import { describeDamage, readReadable } from '../../journal/read-readable.js';
import { viewProfile, viewSalvaged } from '../../journal/run-view.js';
import { RequestError } from '../../run/request-error.js';
import type { DataDir } from '../../store/sqlite/data-dir.js';
import type { InteractionRecord, RunRecord } from '../../store/store.js';
import { ConversationView } from '../../terminal/conversation.js';
import { formatAge } from '../../terminal/format-time.js';
import { paint, type Style } from '../../terminal/style.js';
import { withRun } from './find-run.js';
import { createLineViewer, createScreenViewer, Follower, push, tellDamaged } from '../conversation/follow.js';
import { EXIT, exitCodeOf, LineWriter, type Io } from '../io.js';
import type { DataOption } from '../data-dir.js';
import { styleOf } from '../style.js';

export async function showCommand(
  meant: string,
  options: DataOption & { readonly json?: boolean; readonly details?: boolean },
  io: Io,
): Promise<number> {
  return withRun(meant, options, io, async (data, run) => {
    const salvaged = await salvageRun(data.store, run.run_id);
    const { pending } = salvaged;
    const view = viewSalvaged(salvaged, io.clock.now());
    const head = headOf(salvaged.run, 'fcmp');
    if (options.json) {
      const damage = [
        ...salvaged.damage,
        ...(await describeDamage(data.store, { runId: run.run_id, protocol: 'fcmp', afterSeq: 0, head })),
      ];
      const writer = new LineWriter(io);
      writer.addLine(JSON.stringify({ type: 'run', run: { ...view, ...(damage.length === 0 ? {} : { damage }) } }));
      await writer.flush();
      return EXIT.ok;
    }
    const style = styleOf(io);
    const conversation = new ConversationView(style, { live: false, details: options.details ?? false });
    const { lines, damaged } = await readReadable(data.store, {
      runId: run.run_id,
      protocol: 'fcmp',
      afterSeq: 0,
      limit: Number.MAX_SAFE_INTEGER,
      head,
    });
    tellDamaged('fcmp', damaged, io);
    io.stdout.write(`${header(run, pending, view.interaction?.overdue ?? false, style, io)}\n\n`);
    io.stdout.write(lines.map((line) => push(conversation, line)).join('') + conversation.end());
    if (pending) io.stdout.write(`\n${paint(style, 'dim', `answer it with: parley reply ${run.run_id}`)}\n`);
    if (run.status === 'failed')
      io.stdout.write(`\n${paint(style, 'dim', `try again with: parley retry ${run.run_id}`)}\n`);
    return EXIT.ok;
  });
}

function header(run: RunRecord, pending: InteractionRecord | null, overdue: boolean, style: Style, io: Io): string {
  const now = io.clock.now();
  const { interactive_profile: profile, wait_deadline_at: deadline } = viewProfile(run, pending);
  const facts: [string, string][] = [
    ['run', run.run_id],
    [
      'status',
      `${run.status}${overdue ? ', overdue' : ''}, attempt ${run.attempt_number}, begun ` +
        `${formatAge(now - run.created_at)} ago`,
    ],
    ['folder', run.spec.cwd],
    ...(run.spec.continue_from === undefined ? [] : [['continues', run.spec.continue_from] as [string, string]]),
    ...(run.spec.fork_from === undefined ? [] : [['copy of', run.spec.fork_from.run_id] as [string, string]]),
    ...(run.spec.retry_of === undefined ? [] : [['retry of', run.spec.retry_of] as [string, string]]),
    ...(profile === null
      ? []
      : [
          [
            'waits',
            profile.kind === 'sticky_process'
              ? `in its process${deadline === null ? '' : `, until ${deadline}`}`
              : 'without a process',
          ] as [string, string],
        ]),
    ...Object.entries(run.spec.labels).map(([name, value]): [string, string] => ['label', `${name}=${value}`]),
    ['events', `${run.heads.rasp_seq} observed, ${run.heads.fcmp_seq} shown, digest ${run.heads.digest.slice(0, 16)}…`],
  ];
  return facts.map(([name, value]) => `${paint(style, 'dim', name.padEnd(10))} ${nameInLine(value)}`).join('\n');
}

export interface WatchOptions extends DataOption {
  readonly cursor: number;
  readonly rasp?: boolean;
  readonly follow: boolean;
  readonly json?: boolean;
}

export async function watchCommand(meant: string, options: WatchOptions, io: Io): Promise<number> {
  return withRun(meant, options, io, async (data, run) => {
    const protocol = options.rasp ? 'rasp' : 'fcmp';
    const head = headOf(run, protocol);
    if (options.cursor > head)
      throw new RequestError(
        'CURSOR_BEYOND_END',
        `run ${run.run_id} has ${head} events so far, none after ${options.cursor}`,
      );
    // RASP is for programs; a person reads the conversation.
    const viewer = options.json || options.rasp ? createLineViewer(io) : createScreenViewer(io, styleOf(io));
    if (!options.follow) {
      const { lines, damaged } = await readReadable(data.store, {
        runId: run.run_id,
        protocol,
        afterSeq: options.cursor,
        limit: Number.MAX_SAFE_INTEGER,
        head,
      });
      tellDamaged(protocol, damaged, io);
      await viewer.show(lines);
      viewer.rest();
      return exitCodeOf(run.status);
    }
    return follow(
      data,
      run,
      new Follower(
        {
          store: data.store,
          runId: run.run_id,
          viewer,
          protocol,
          throughWaiting: true,
          isAlive: () => data.hasWriter(),
          onWaiting: () =>
            options.json ||
            io.stderr.write(`waits for an answer: parley reply ${run.run_id}    (Ctrl-C ends the watching)\n`),
        },
        options.cursor,
        io,
      ),
      io,
    );
  });
}

async function follow(data: DataDir, { run_id: runId }: RunRecord, follower: Follower, io: Io): Promise<number> {
  const stops: (() => void)[] = [];
  const leave = new Promise<void>((resolve) => void stops.push(io.onSignal('SIGINT', resolve)));
  const { stop, run } = await follower.follow({ leave });
  for (const stopListening of stops) stopListening();
  if (stop === 'left') return EXIT.interrupted;
  if (stop === 'lost')
    io.stderr.write(
      `parley: nobody works on run ${runId} any more (it is ${run.status})\n  parley retry ${runId}    ends it ` +
        `with its code and tries again\n`,
    );
  return exitCodeOf((await loadReadable(data.store, runId)).status);
}

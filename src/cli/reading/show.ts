// parley show and parley watch: print a run as it is now, or follow its events from a cursor until it ends.
import { nameInLine } from '../../kernel/visible-text.js';
import { headOf, loadReadable } from '../../journal/load-run.js';
import { describeDamage, everyReadable } from '../../journal/read-readable.js';
import { viewProfile, viewSalvaged } from '../../journal/run-view.js';
import { refusal } from '../../run/request-error.js';
import type { InteractionRecord, RunRecord } from '../../store/store.js';
import { ConversationView } from '../../terminal/conversation.js';
import { formatAge } from '../../terminal/format-time.js';
import { paint, type Style } from '../../terminal/style.js';
import { textWidth } from '../../terminal/text-width.js';
import { withRun } from './find-run.js';
import { DamageReport } from './report-damage.js';
import { createLineViewer, createScreenViewer, Follower, push, type FollowOptions } from '../conversation/follow.js';
import { drained, EXIT, exitCodeOf, LineWriter, type Io } from '../io.js';
import type { DataOption } from '../data-dir.js';
import { styleOf } from '../style.js';
import { isInProcess } from '../../run/waiting/wait-policy.js';
import { texts } from '../language/language.js';

export async function showCommand(
  runRef: string,
  options: DataOption & { readonly json?: boolean; readonly details?: boolean },
  io: Io,
): Promise<number> {
  return withRun({ ...options, runRef }, io, async (data, run, salvaged) => {
    const { pending } = salvaged;
    const view = viewSalvaged(salvaged, io.clock.now());
    const head = headOf(run, 'fcmp');
    if (options.json) {
      const problems = [
        ...salvaged.damage,
        ...(await describeDamage(data.store, { runId: run.run_id, protocol: 'fcmp', afterSeq: 0, head })),
      ];
      const damage = problems.map(({ text }) => text);
      const writer = new LineWriter(io);
      writer.addLine(JSON.stringify({ type: 'run', run: { ...view, ...(damage.length === 0 ? {} : { damage }) } }));
      await writer.flush();
      return EXIT.ok;
    }
    const style = styleOf(io);
    const conversation = new ConversationView(style, { live: false, details: options.details ?? false });
    const damage = new DamageReport('fcmp', io);
    const overdue = view.interaction?.overdue ?? false;
    io.stdout.write(`${header(run, { pending, overdue, style, now: io.clock.now() })}\n\n`);
    for await (const { lines, damaged } of everyReadable(data.store, {
      runId: run.run_id,
      protocol: 'fcmp',
      afterSeq: 0,
      head,
    })) {
      damage.add(damaged);
      io.stdout.write(lines.map((line) => push(conversation, line)).join(''));
      await drained(io.stdout);
    }
    damage.end();
    io.stdout.write(conversation.end());
    if (pending) io.stdout.write(`\n${paint(style, 'dim', texts().say.answerIt(run.run_id))}\n`);
    if (run.status === 'failed') io.stdout.write(`\n${paint(style, 'dim', texts().say.retryIt(run.run_id))}\n`);
    return EXIT.ok;
  });
}

const NAME_COLUMNS = 10;

interface HeaderOptions {
  readonly pending: InteractionRecord | null;
  readonly overdue: boolean;
  readonly style: Style;
  readonly now: number;
}

function header(run: RunRecord, { pending, overdue, style, now }: HeaderOptions): string {
  const { say } = texts();
  const { facts: names } = say;
  const { interactive_profile: profile, wait_deadline_at: deadline } = viewProfile(run, pending);
  const status = say.statuses[run.status];
  const { continue_from: continued, fork_from: copied, retry_of: retried, labels } = run.spec;
  const facts: [string, string][] = [
    [names.run, run.run_id],
    [
      names.status,
      say.statusFact(overdue ? say.overdue(status) : status, run.attempt_number, formatAge(now - run.created_at)),
    ],
    [names.folder, run.spec.cwd],
  ];
  if (continued !== undefined) facts.push([names.continues, continued]);
  if (copied !== undefined) facts.push([names.copyOf, copied.run_id]);
  if (retried !== undefined) facts.push([names.retryOf, retried]);
  if (profile !== null) facts.push([names.waits, describeWait(isInProcess(profile), deadline)]);
  for (const [name, value] of Object.entries(labels)) facts.push([names.label, `${name}=${value}`]);
  const { rasp_seq: observed, fcmp_seq: shown, digest } = run.heads;
  facts.push([names.events, say.eventsFact(observed, shown, digest.slice(0, 16))]);
  return facts.map(([name, value]) => `${paint(style, 'dim', padName(name))} ${nameInLine(value)}`).join('\n');
}

function describeWait(inProcess: boolean, deadline: string | null): string {
  const { say } = texts();
  if (!inProcess) return say.waitsWithoutProcess;
  return deadline === null ? say.waitsInProcess : say.waitsInProcessUntil(deadline);
}

function padName(name: string): string {
  return name + ' '.repeat(Math.max(0, NAME_COLUMNS - textWidth(name)));
}

export interface WatchOptions extends DataOption {
  readonly cursor: number;
  readonly rasp?: boolean;
  readonly follow: boolean;
  readonly json?: boolean;
}

export async function watchCommand(runRef: string, options: WatchOptions, io: Io): Promise<number> {
  return withRun({ ...options, runRef }, io, async (data, run) => {
    const protocol = options.rasp ? 'rasp' : 'fcmp';
    const head = headOf(run, protocol);
    if (options.cursor > head) throw refusal('CURSOR_BEYOND_END', { run: run.run_id, head, cursor: options.cursor });
    // RASP is for programs; a person reads the conversation.
    const viewer = options.json || options.rasp ? createLineViewer(io) : createScreenViewer(io, styleOf(io));
    if (!options.follow) {
      const damage = new DamageReport(protocol, io);
      for await (const { lines, damaged } of everyReadable(data.store, {
        runId: run.run_id,
        protocol,
        afterSeq: options.cursor,
        head,
      })) {
        damage.add(damaged);
        await viewer.show(lines);
      }
      damage.end();
      viewer.rest();
      return exitCodeOf(run.status);
    }
    return follow(
      {
        store: data.store,
        runId: run.run_id,
        viewer,
        protocol,
        throughWaiting: true,
        isAlive: () => data.hasWriter(),
        onWaiting: () => options.json || io.stderr.write(`${texts().say.waitingWhileWatched(run.run_id)}\n`),
      },
      options.cursor,
      io,
    );
  });
}

async function follow(options: FollowOptions, cursor: number, io: Io): Promise<number> {
  const { store, runId } = options;
  const stops: (() => void)[] = [];
  const leave = new Promise<void>((resolve) => void stops.push(io.onSignal('SIGINT', resolve)));
  const { stop, run } = await new Follower(options, cursor, io).follow({ leave });
  for (const stopListening of stops) stopListening();
  if (stop === 'left') return EXIT.interrupted;
  if (stop === 'lost')
    io.stderr.write(`${texts().say.noWorker(runId, texts().say.statuses[run.status])}
`);
  return exitCodeOf((await loadReadable(store, runId)).status);
}

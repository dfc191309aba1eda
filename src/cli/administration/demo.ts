// parley demo: shows a recovery in a few seconds, with the rehearsal engine and a temporary folder: a run asks, the
// orchestrator is killed, a new one finds the question, an answer continues the run in a new process, and everything is
// verified.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { invariant } from '../../kernel/invariant.js';
import { everyEvent } from '../../journal/every-event.js';
import { verifyRun } from '../../audit/verify-run.js';
import { listMarked } from '../../process/process-table.js';
import type { RaspData, RaspEvent } from '../../rasp/event.js';
import { openForReading, type DataDir } from '../../store/sqlite/data-dir.js';
import type { RunRecord } from '../../store/store.js';
import { paint } from '../../terminal/style.js';
import { createScreenViewer, Follower } from '../conversation/follow.js';
import { EXIT, type Io } from '../io.js';
import { startWorker } from '../conversation/start-work.js';
import { texts } from '../language/language.js';
import { styleOf } from '../style.js';
import { checkLine } from '../conversation/tell.js';
import type { Job } from '../conversation/assignment.js';

const PROMPT = 'Set up the storage of this project.';

export async function demoCommand(options: { readonly keep?: boolean }, io: Io): Promise<number> {
  const path = mkdtempSync(join(tmpdir(), 'parley-demo-'));
  try {
    // Uses only its own folder, even if PARLEY_DATABASE_URL is set.
    const ok = await runDemo(path, { ...io, env: { ...io.env, PARLEY_DATABASE_URL: undefined } });
    if (options.keep) io.stdout.write(`\n${texts().demo.kept(path)}\n`);
    return ok ? EXIT.ok : EXIT.failed;
  } finally {
    if (!options.keep) rmSync(path, { recursive: true, force: true });
  }
}

async function runDemo(path: string, io: Io): Promise<boolean> {
  const style = styleOf(io);
  const { demo: t } = texts();
  let step = 0;
  const say = (text: string): void => void io.stdout.write(`\n${paint(style, 'bold', `${(step += 1)}. ${text}`)}\n`);
  const note = (text: string): void => void io.stdout.write(`${paint(style, 'dim', `   ${text}`)}\n`);
  const start = (job: Job, stay = false) => startWorker({ data: path, job, stay }, io);

  say(t.start);
  const first = await start(
    { type: 'create', request: { engine: 'rehearsal', prompt: PROMPT, execution_mode: 'interactive' } },
    true,
  );
  const { runId } = first;
  const data = await openForReading(path);
  invariant(data, 'the worker made a database');
  try {
    note(t.started(runId, first.pid));
    const follower = new Follower({ store: data.store, runId, viewer: createScreenViewer(io, style) }, 0, io);
    await follower.follow({ isAlive: first.alive });
    if ((await load(data, runId)).status !== 'waiting_user') return false;
    note(t.waiting(processesOf(runId)));

    say(t.kill(first.pid));
    process.kill(first.pid, 'SIGKILL');
    await first.untilEnded();
    note(t.killed);

    say(t.restart);
    const second = await start({ type: 'run_due', run_id: runId }, false);
    await second.untilEnded();
    const pending = await data.store.loadPendingInteraction(runId);
    invariant(pending, 'the question is there');
    note(t.restarted(second.pid, String(pending.question['prompt'])));

    const [option] = pending.question['options'] as { label: string; value: string }[];
    say(t.answer(option?.label ?? 'yes'));
    const third = await start({
      type: 'reply',
      run_id: runId,
      reply: { interaction_id: pending.interaction_id, response: option?.value ?? 'yes' },
    });
    await follower.follow({ isAlive: third.alive });
    await third.untilEnded();
    for (const line of await describeTurns(data, runId)) note(line);

    say(t.proof);
    const run = await load(data, runId);
    const checks = await verifyRun(data.store, path, run);
    for (const check of checks) io.stdout.write(`   ${checkLine(check, style)}\n`);
    io.stdout.write(`\n${t.tryIt(callName(io))}\n`);
    return run.status === 'succeeded' && checks.every((check) => check.ok);
  } finally {
    await data.close();
  }
}

// How the person called this program, so that the printed command works as it is.
function callName({ env, machine: { entry } }: Io): string {
  if (env['npm_command'] === 'exec') return 'npx parley';
  return entry.endsWith('.js') && !entry.includes('node_modules') ? `node ${entry}` : 'parley';
}

async function load(data: DataDir, runId: string): Promise<RunRecord> {
  const run = await data.store.loadRun(runId);
  invariant(run, 'the run is stored');
  return run;
}

function processesOf(runId: string): number {
  return listMarked().filter(({ mark }) => mark?.startsWith(`${runId}/`)).length;
}

// Returns which process ran which turn, and in which session.
async function describeTurns(data: DataDir, runId: string): Promise<string[]> {
  const events: RaspEvent[] = [];
  for await (const event of everyEvent(data.store, runId)) events.push(event);
  return events
    .filter(({ event }) => event.type === 'lifecycle.process.spawned')
    .map(({ data: spawned, attempt_number: attempt }) => {
      const session = events.find(
        (event) => event.attempt_number === attempt && event.event.type === 'lifecycle.session.bound',
      )?.data as unknown as RaspData['lifecycle.session.bound'] | undefined;
      const { turn, unknownSession } = texts().demo;
      const { pid } = spawned as unknown as RaspData['lifecycle.process.spawned'];
      return turn(attempt, pid, session?.session_id ?? unknownSession);
    });
}

// parley work: the process behind a command that starts or answers a run. It reads one job from that command, returns
// the id of the run, and works until no run is queued or running. It outlives the command, so closing a terminal never
// ends an agent. SIGINT cancels its run, SIGTERM shuts it down.
import { text } from 'node:stream/consumers';
import type { Json } from '../../kernel/json.js';
import type { Log } from '../../kernel/log.js';
import { forceOf } from '../../commands/force-of.js';
import type { Orchestrator } from '../../orchestrator/orchestrator.js';
import { RequestError, refusal } from '../../run/request-error.js';
import { noteWriter } from '../../store/sqlite/data-dir.js';
import type { RunRecord } from '../../store/store.js';
import { abandonOnCrash } from './abandon-on-crash.js';
import type { Answer, Assignment, Job } from './assignment.js';
import { EXIT, type Io } from '../io.js';
import { openLogFile } from '../open-log.js';
import { actorOf, openWriter, type OpenWriter } from '../open-writer.js';
import { writerOf } from '../writer-of.js';

export async function work(io: Io): Promise<number> {
  const { parent } = io;
  if (!parent) throw refusal('INVALID_ARGUMENT.worker');
  // Read from a pipe, whose content survives the exit of the command.
  const { data, job, stay = false } = JSON.parse(await text(io.stdin)) as Assignment;
  const log = openLogFile(data, io);
  const crash = abandonOnCrash(io, { log });
  const answer = async (message: Answer): Promise<void> => {
    await parent.send(message as unknown as Json);
    if (!stay || 'error' in message) parent.disconnect();
  };
  const started = await begin({ data, job, log }, io).catch(async (error: unknown) => {
    if (!(error instanceof RequestError)) log.error(error, { message: 'the worker could not start its job' });
    // Without an answer, both processes would wait forever.
    const reason = error instanceof Error ? error.message : String(error);
    await answer(toAnswer(error instanceof RequestError ? error : refusal('WORKER_NOT_STARTED.not_begun', { reason })));
    return null;
  });
  if (!started) return EXIT.failed;
  const { writer } = started;
  crash.orchestrator = writer.orchestrator;
  if ('refusal' in started) {
    await answer(toAnswer(started.refusal));
    // Work that was due at the start, such as a question that timed out, still runs.
    await writer.orchestrator.quiet();
    await writer.close();
    return EXIT.failed;
  }
  const { run } = started;
  const idle = stay ? parent.gone : writer.orchestrator.quiet();
  const canceled = io.onSignal(
    'SIGINT',
    () => void writer.orchestrator.cancel(run.run_id, actorOf(io)).catch(() => {}),
  );
  const stopRequested = new Promise<void>((resolve) => io.onSignal('SIGTERM', resolve));
  await answer({ run_id: run.run_id });
  await Promise.race([idle, stopRequested]);
  await writer.close();
  canceled();
  return EXIT.ok;
}

type Started =
  | { readonly writer: OpenWriter; readonly run: Pick<RunRecord, 'run_id'> }
  | { readonly writer: OpenWriter; readonly refusal: RequestError };

interface BeginOptions extends Pick<Assignment, 'data' | 'job'> {
  readonly log: Log;
}

async function begin({ data, job, log }: BeginOptions, io: Io): Promise<Started> {
  const writer = await openWriter(data, io, { log });
  try {
    const run = await runJob(writer.orchestrator, job, io);
    noteWriter(data, { ...writerOf(io), run_id: run.run_id });
    return { writer, run };
  } catch (refusal) {
    if (refusal instanceof RequestError) return { writer, refusal };
    await writer.close();
    throw refusal;
  }
}

function runJob(orchestrator: Orchestrator, job: Job, io: Io): Promise<Pick<RunRecord, 'run_id'>> {
  switch (job.type) {
    case 'create':
      return orchestrator.create(job.request, actorOf(io));
    case 'continue':
      return orchestrator.continueFrom(job.run_id, { prompt: job.prompt, ...forceOf(job) }, actorOf(io));
    case 'fork':
      return orchestrator.fork(job.run_id, { prompt: job.prompt, ...forceOf(job) }, actorOf(io));
    case 'retry':
      return orchestrator.retry(job.run_id, forceOf(job), actorOf(io));
    case 'reply':
      return orchestrator.reply(job.run_id, job.reply, actorOf(io));
    case 'run_due':
      return Promise.resolve(job);
  }
}

function toAnswer({ code, message, values, hint }: RequestError): Answer {
  return { error: { code, message, values, hint } };
}

// parley work: the process behind a command that starts or answers something. It takes one job from the command that
// started it, says which run that is, and works until nothing is queued or running any more. It outlives that command:
// closing a terminal ends no agent. SIGINT cancels its run, SIGTERM ends it as a shutdown does.
import { text } from 'node:stream/consumers';
import type { Json, JsonObject } from '../../kernel/json.js';
import type { CreateRunRequest } from '../../commands/create-request.js';
import { forceOf } from '../../commands/force-of.js';
import type { Orchestrator } from '../../orchestrator/orchestrator.js';
import type { Reply } from '../../commands/reply.js';
import { RequestError } from '../../run/request-error.js';
import { noteWriter } from '../../store/sqlite/data-dir.js';
import type { RunRecord } from '../../store/store.js';
import { abandonOnCrash } from './abandon-on-crash.js';
import { EXIT, type Io } from '../io.js';
import { actorOf, logFailure, openWriter, type OpenWriter } from '../open-writer.js';
import { writerOf } from '../writer-of.js';

export type Job =
  | { readonly type: 'create'; readonly request: CreateRunRequest }
  | { readonly type: 'continue'; readonly run_id: string; readonly prompt: string; readonly force?: boolean }
  | { readonly type: 'fork'; readonly run_id: string; readonly prompt: string; readonly force?: boolean }
  | { readonly type: 'retry'; readonly run_id: string; readonly force?: boolean }
  | { readonly type: 'reply'; readonly run_id: string; readonly reply: Reply }
  // Only what is due: recovery, and questions whose time is over.
  | { readonly type: 'settle'; readonly run_id: string };

export interface Assignment {
  readonly data: string;
  readonly job: Job;
  // Stays as long as the command that started it, also when nothing is to be done.
  readonly stay?: boolean;
}

export type Answer =
  | { readonly run_id: string }
  | { readonly error: { readonly code: string; readonly message: string } };

export async function work(io: Io): Promise<number> {
  const { parent } = io;
  if (!parent)
    throw new RequestError('INVALID_ARGUMENT', 'parley work is started by other commands of parley, not by hand');
  // From a pipe: what was written into it is there even when the command is not any more.
  const { data, job, stay = false } = JSON.parse(await text(io.stdin)) as Assignment;
  const crash = abandonOnCrash(data, io);
  const answer = async (given: Answer): Promise<void> => {
    await parent.send(given as unknown as Json);
    if (!stay || 'error' in given) parent.disconnect();
  };
  const begun = await begin(data, job, io).catch(async (error: unknown) => {
    if (!(error instanceof RequestError)) logFailure(data, io, '', error);
    // Without an answer both would wait for ever.
    const [code, message] =
      error instanceof RequestError
        ? [error.code, error.message]
        : [
            'WORKER_NOT_STARTED',
            `the work could not be begun: ${error instanceof Error ? error.message : String(error)}; see ` +
              'parley.log in the data directory',
          ];
    await answer({ error: { code, message } });
    return null;
  });
  if (!begun) return EXIT.failed;
  const { writer } = begun;
  crash.orchestrator = writer.orchestrator;
  if ('refusal' in begun) {
    await answer({ error: { code: begun.refusal.code, message: begun.refusal.message } });
    // What was due when it opened (a question whose time was over, say) is played all the same.
    await writer.orchestrator.quiet();
    await writer.close();
    return EXIT.failed;
  }
  const { run } = begun;
  const over = stay ? parent.gone : writer.orchestrator.quiet();
  const canceled = io.onSignal(
    'SIGINT',
    () => void writer.orchestrator.cancel(run.run_id, actorOf(io)).catch(() => {}),
  );
  const asked = new Promise<void>((resolve) => io.onSignal('SIGTERM', resolve));
  await answer({ run_id: run.run_id });
  await Promise.race([over, asked]);
  await writer.close();
  canceled();
  return EXIT.ok;
}

type Begun =
  | { readonly writer: OpenWriter; readonly run: Pick<RunRecord, 'run_id'> }
  | { readonly writer: OpenWriter; readonly refusal: RequestError };

async function begin(data: string, job: Job, io: Io): Promise<Begun> {
  const writer = await openWriter(data, io);
  try {
    const run = await take(writer.orchestrator, job, io);
    noteWriter(data, { ...writerOf(io), run_id: run.run_id });
    return { writer, run };
  } catch (refusal) {
    if (refusal instanceof RequestError) return { writer, refusal };
    await writer.close();
    throw refusal;
  }
}

function take(orchestrator: Orchestrator, job: Job, io: Io): Promise<Pick<RunRecord, 'run_id'>> {
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
    case 'settle':
      return Promise.resolve(job);
  }
}

export function isAnswer(message: Json): message is JsonObject & Answer {
  return typeof message === 'object' && message !== null && ('run_id' in message || 'error' in message);
}

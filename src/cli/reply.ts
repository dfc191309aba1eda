// parley reply: answers the question of a run that waits, and plays the turn to its next stop.
import { parseJson, type Json } from '../kernel/json.js';
import { readStoredJson } from '../kernel/stored-json.js';
import { RequestError } from '../run/request-error.js';
import { isTerminal } from '../run/statechart.js';
import type { DataDir } from '../store/sqlite/data-dir.js';
import type { InteractionRecord, RunRecord } from '../store/store.js';
import { createDialogue } from '../terminal/answer.js';
import type { Question } from '../terminal/question-text.js';
import { converse } from './converse.js';
import { withRun } from './find-run.js';
import type { DataOption } from './data-dir.js';
import type { Io } from './io.js';
import { readPrompt, tellDetached } from './run.js';
import { startWork } from './start-work.js';

export interface ReplyOptions extends DataOption {
  readonly value?: string;
  readonly finish?: boolean;
  readonly interaction?: string;
  readonly key?: string;
  readonly detach?: boolean;
  readonly json?: boolean;
}

export async function replyCommand(meant: string, given: string | undefined, options: ReplyOptions, io: Io): Promise<number> {
  return withRun(meant, options, io, async (data, run) => {
    const asks = given === undefined && options.value === undefined && !options.finish;
    if (asks && run.status !== 'waiting_user') throw notWaiting(run);
    if (asks && !(io.terminal.stdin && io.terminal.stdout)) throw new RequestError('INVALID_ARGUMENT', `say the answer: parley reply ${run.run_id} TEXT, or --value JSON, or --finish`);
    const shown = run.heads.fcmp_seq;
    // On a terminal the question is shown again, and asked.
    if (asks) return converse(data, run.run_id, null, { json: options.json ?? false, answer: true, cursor: await beforeQuestion(data, run) }, io);
    const interaction = await findInteraction(data, run, options);
    const answer = options.finish ? { finish: true } : { response: await readAnswer(interaction, given, options, io) };
    const reply = { interaction_id: interaction.interaction_id, ...answer, ...(options.key === undefined ? {} : { idempotency_key: options.key }) };
    const work = await startWork({ data: data.path, job: { type: 'reply', run_id: run.run_id, reply } }, io);
    if (!options.detach) return converse(data, run.run_id, work, { json: options.json ?? false, answer: true, cursor: shown }, io);
    return tellDetached(data, run.run_id, options, io);
  });
}

// With a key, an answer may be given again after the question is over: then the first one is told.
async function findInteraction(data: DataDir, run: RunRecord, options: ReplyOptions): Promise<InteractionRecord> {
  const repeated = options.key === undefined ? null : await data.store.loadByKey(run.run_id, options.key);
  const found = options.interaction === undefined ? (repeated ?? (await data.store.loadPending(run.run_id))) : await data.store.loadInteraction(options.interaction);
  if (found) return found;
  if (options.interaction !== undefined) throw new RequestError('INTERACTION_NOT_FOUND', `run ${run.run_id} has no interaction ${options.interaction}`);
  throw notWaiting(run);
}

function notWaiting(run: RunRecord): RequestError {
  return new RequestError('RUN_NOT_WAITING', `run ${run.run_id} is ${run.status}: it does not wait for an answer${isTerminal(run.status) ? `; parley continue ${run.run_id} PROMPT goes on with it` : ''}`);
}

// A number chooses an option, as in the dialogue; --value is taken to the letter.
async function readAnswer({ question }: InteractionRecord, given: string | undefined, options: ReplyOptions, io: Io): Promise<Json> {
  if (options.value !== undefined) {
    const value = parseJson(options.value);
    if (value === undefined) throw new RequestError('INVALID_ARGUMENT', `--value needs JSON, not ${options.value}`);
    return value;
  }
  const typed = await readPrompt(given ?? '', io);
  const asked = question as unknown as Question;
  // Several fields are one answer here; who wants them apart gives --value.
  if (asked.fields && asked.fields.length > 0) return typed;
  const taken = createDialogue(asked).give(typed);
  if (taken.kind === 'reply') return taken.response;
  // A line that would go on, in a dialogue.
  if (taken.kind === 'more') return typed;
  throw new RequestError('INVALID_ARGUMENT', taken.kind === 'problem' ? taken.message : 'use --finish, or parley cancel');
}

// The cursor right before the pending question.
async function beforeQuestion(data: DataDir, run: RunRecord): Promise<number> {
  const lines = await data.store.readJournal(run.run_id, 'fcmp', { limit: Number.MAX_SAFE_INTEGER });
  const at = lines.findLastIndex((line) => (readStoredJson(line) as { type: string }).type === 'user.input.required');
  return at < 0 ? 0 : at;
}

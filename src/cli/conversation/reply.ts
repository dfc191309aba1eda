// parley reply: answers the question of a run that waits, and plays the turn to its next stop.
import { parseJson, type Json } from '../../kernel/json.js';
import { readStoredJson } from '../../kernel/stored-json.js';
import { headOf } from '../../journal/load-run.js';
import { readReadable } from '../../journal/read-readable.js';
import { RequestError } from '../../run/request-error.js';
import { isTerminal } from '../../run/statechart.js';
import type { DataDir } from '../../store/sqlite/data-dir.js';
import type { InteractionRecord, RunRecord } from '../../store/store.js';
import { answerByPlace, confirmSent, createDialogue } from '../../terminal/answer.js';
import { chooseOption } from '../../terminal/choose-option.js';
import type { Question } from '../../terminal/question-text.js';
import { converse } from './converse.js';
import { withRun } from '../reading/find-run.js';
import type { DataOption } from '../data-dir.js';
import type { Io } from '../io.js';
import { readPrompt, tellDetached } from './run.js';
import { startWork } from './start-work.js';

const STATUS_WORDS: Readonly<Record<string, string>> = {
  succeeded: 'has succeeded',
  failed: 'has failed',
  canceled: 'was canceled',
};

export interface ReplyOptions extends DataOption {
  readonly value?: string;
  // The place of an option, counted from 1.
  readonly option?: number;
  readonly finish?: boolean;
  readonly interaction?: string;
  readonly key?: string;
  readonly detach?: boolean;
  readonly json?: boolean;
}

export async function replyCommand(
  meant: string,
  given: string | undefined,
  options: ReplyOptions,
  io: Io,
): Promise<number> {
  const last = options.key === undefined ? 'waiting' : 'keyed';
  return withRun(meant, { ...options, last }, io, async (data, run) => {
    const asks = given === undefined && options.value === undefined && options.option === undefined && !options.finish;
    if (asks && run.status !== 'waiting_user') throw notWaiting(run);
    if (asks && !(io.terminal.stdin && io.terminal.stdout))
      throw new RequestError(
        'INVALID_ARGUMENT',
        `say the answer: parley reply ${run.run_id} TEXT, or --option N, or --value JSON, or --finish`,
      );
    const shown = run.heads.fcmp_seq;
    // On a terminal the question is shown again, and asked.
    if (asks)
      return converse(
        data,
        run.run_id,
        null,
        { json: options.json ?? false, answer: true, cursor: await beforeQuestion(data, run) },
        io,
      );
    const interaction = await findInteraction(data, run, options);
    const answer = options.finish ? null : await readAnswer(interaction, given, options, io);
    // This command shows nothing of what it approves.
    const review = interaction.question['kind'] === 'approval' ? ({ review: 'unread' } as const) : {};
    const reply = {
      interaction_id: interaction.interaction_id,
      ...(answer === null ? { finish: true } : { response: answer.response, ...review }),
      ...(options.key === undefined ? {} : { idempotency_key: options.key }),
    };
    const work = await startWork({ data: data.path, job: { type: 'reply', run_id: run.run_id, reply } }, io);
    if (answer !== null && !options.json) io.stderr.write(`${confirmSent(answer)}\n`);
    if (!options.detach)
      return converse(data, run.run_id, work, { json: options.json ?? false, answer: true, cursor: shown }, io);
    return tellDetached(data, run.run_id, options, io);
  });
}

// With a key, an answer may be given again after the question is over: then the first one is told.
async function findInteraction(data: DataDir, run: RunRecord, options: ReplyOptions): Promise<InteractionRecord> {
  const repeated = options.key === undefined ? null : await data.store.loadByKey(run.run_id, options.key);
  const found =
    options.interaction === undefined
      ? (repeated ?? (await data.store.loadPending(run.run_id)))
      : await data.store.loadInteraction(options.interaction);
  if (found) return found;
  if (options.interaction !== undefined)
    throw new RequestError('INTERACTION_NOT_FOUND', `run ${run.run_id} has no interaction ${options.interaction}`);
  throw notWaiting(run);
}

function notWaiting(run: RunRecord): RequestError {
  const { run_id: id, status } = run;
  const way = isTerminal(status) ? ` To follow up: parley continue ${id} "…"` : ' It is not waiting for an answer.';
  const state = STATUS_WORDS[status] ?? `is ${status}`;
  return new RequestError('RUN_NOT_WAITING', `Run ${id} ${state}, so there is nothing to answer.${way}`);
}

interface Answer {
  readonly response: Json;
  // In words.
  readonly sent: string;
}

// A text is read as in the dialogue; --option and --value leave nothing to be read.
async function readAnswer(
  interaction: InteractionRecord,
  given: string | undefined,
  options: ReplyOptions,
  io: Io,
): Promise<Answer> {
  const question = interaction.question as unknown as Question;
  const ways = [given, options.value, options.option].filter((each) => each !== undefined);
  if (ways.length > 1)
    throw new RequestError('INVALID_ARGUMENT', 'give one of TEXT, --option and --value, not several');
  if (options.value !== undefined) {
    const value = parseJson(options.value);
    if (value === undefined) throw new RequestError('INVALID_ARGUMENT', `--value needs JSON, not ${options.value}`);
    return { response: value, sent: options.value };
  }
  if (options.option !== undefined) {
    const read = answerByPlace(question, options.option);
    if ('problem' in read) throw new RequestError('INVALID_ARGUMENT', read.problem);
    return { response: read.value, sent: read.sent };
  }
  const typed = await readPrompt(given ?? '', io);
  // Several fields are one answer here; who wants them apart gives --value.
  if (question.fields && question.fields.length > 0) return { response: typed, sent: JSON.stringify(typed) };
  const read = createDialogue(question).give(typed);
  if (read.kind === 'reply') return read;
  // A line that would go on, in a dialogue.
  if (read.kind === 'more') return { response: typed, sent: JSON.stringify(typed) };
  if (read.kind !== 'problem') throw new RequestError('INVALID_ARGUMENT', 'use --finish, or parley cancel');
  throw new RequestError('INVALID_ARGUMENT', `${read.message}${waysOut(typed, question)}`);
}

// How to say without words which reading of the text is meant.
function waysOut(typed: string, { options }: Question): string {
  const choice = chooseOption(options, typed.trim());
  if (choice.kind !== 'ambiguous') return '';
  const ways = choice.readings.map(({ place, option }) => `--option ${place} sends ${JSON.stringify(option.value)}`);
  return `. ${ways.join(', ')}; --value JSON sends any other value`;
}

// The cursor right before the pending question.
export async function beforeQuestion(data: DataDir, run: RunRecord): Promise<number> {
  const { lines } = await readReadable(data.store, {
    runId: run.run_id,
    protocol: 'fcmp',
    afterSeq: 0,
    limit: Number.MAX_SAFE_INTEGER,
    head: headOf(run, 'fcmp'),
  });
  const events = lines.map((line) => readStoredJson(line) as { type: string; seq: number });
  return (events.findLast(({ type }) => type === 'user.input.required')?.seq ?? 1) - 1;
}

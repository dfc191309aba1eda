// parley reply: answers the question of a waiting run, and shows the run until it waits again or ends.
import { terminalTexts } from '../../terminal/texts.js';
import type { Phrase } from '../../kernel/fill-template.js';
import { phrase } from '../../messages/phrase.js';
import { parseJson, type Json } from '../../kernel/json.js';
import { readStoredJson } from '../../kernel/stored-json.js';
import { headOf } from '../../journal/load-run.js';
import { everyReadable } from '../../journal/read-readable.js';
import { refusal, type RequestError } from '../../run/request-error.js';
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
import { printDetached, readPrompt } from './run.js';
import { startWork } from './start-work.js';

const STATUS_PHRASES: Readonly<Record<string, Phrase>> = {
  succeeded: phrase('has_succeeded'),
  failed: phrase('has_failed'),
  canceled: phrase('was_canceled'),
};

export interface ReplyOptions extends DataOption {
  // The answer as a person types it; - reads it from stdin.
  readonly text?: string;
  // The answer as JSON.
  readonly value?: string;
  // The number of an option, counted from 1.
  readonly option?: number;
  readonly finish?: boolean;
  readonly interaction?: string;
  readonly key?: string;
  readonly detach?: boolean;
  readonly json?: boolean;
}

export async function replyCommand(runRef: string, options: ReplyOptions, io: Io): Promise<number> {
  const last = options.key === undefined ? 'waiting' : 'keyed';
  return withRun({ ...options, runRef, last }, io, async (data, run) => {
    const { text, value, option, finish } = options;
    const asks = text === undefined && value === undefined && option === undefined && !finish;
    if (asks && run.status !== 'waiting_user') throw notWaiting(run);
    if (asks && !(io.terminal.stdin && io.terminal.stdout))
      throw refusal('INVALID_ARGUMENT.no_answer', { run: run.run_id });
    const shown = run.heads.fcmp_seq;
    const conversation = { runId: run.run_id, json: options.json ?? false, answer: true };
    // Shows the question again on a terminal, and asks there.
    if (asks) return converse(data, { ...conversation, work: null, cursor: await beforeQuestion(data, run) }, io);
    const interaction = await findInteraction(data, run, options);
    const answer = finish ? null : await readAnswer(interaction, options, io);
    // This command does not show the request that it approves.
    const review = interaction.question['kind'] === 'approval' ? ({ review: 'unread' } as const) : {};
    const reply = {
      interaction_id: interaction.interaction_id,
      ...(answer === null ? { finish: true } : { response: answer.response, ...review }),
      ...(options.key === undefined ? {} : { idempotency_key: options.key }),
    };
    const work = await startWork({ data: data.path, job: { type: 'reply', run_id: run.run_id, reply } }, io);
    if (answer !== null && !options.json) io.stderr.write(`${confirmSent(answer)}\n`);
    if (!options.detach) return converse(data, { ...conversation, work, cursor: shown }, io);
    return printDetached(data, conversation, io);
  });
}

// With an idempotency key, a reply can be repeated after the question was answered: it returns the first result.
async function findInteraction(data: DataDir, run: RunRecord, options: ReplyOptions): Promise<InteractionRecord> {
  const repeated = options.key === undefined ? null : await data.store.loadInteractionByKey(run.run_id, options.key);
  const interaction =
    options.interaction === undefined
      ? (repeated ?? (await data.store.loadPendingInteraction(run.run_id)))
      : await data.store.loadInteraction(options.interaction);
  if (interaction) return interaction;
  if (options.interaction !== undefined)
    throw refusal('INTERACTION_NOT_FOUND.unknown', { run: run.run_id, interaction: options.interaction });
  throw notWaiting(run);
}

function notWaiting(run: RunRecord): RequestError {
  const { run_id: id, status } = run;
  const state = STATUS_PHRASES[status] ?? phrase('is_status', { status });
  return refusal(isTerminal(status) ? 'RUN_NOT_WAITING.ended' : 'RUN_NOT_WAITING.active', { run: id, state });
}

interface Answer {
  readonly response: Json;
  // The response in words.
  readonly sent: string;
}

// Interprets a text as the dialogue does; --option and --value need no interpretation.
async function readAnswer(interaction: InteractionRecord, options: ReplyOptions, io: Io): Promise<Answer> {
  const question = interaction.question as unknown as Question;
  const sources = [options.text, options.value, options.option].filter((each) => each !== undefined);
  if (sources.length > 1) throw refusal('INVALID_ARGUMENT.answers');
  if (options.value !== undefined) {
    const value = parseJson(options.value);
    if (value === undefined) throw refusal('INVALID_ARGUMENT.value', { value: options.value });
    return { response: value, sent: options.value };
  }
  if (options.option !== undefined) {
    const read = answerByPlace(question, options.option);
    if ('problem' in read) throw refusal('INVALID_ARGUMENT.answer', { problem: read.problem });
    return { response: read.value, sent: read.sent };
  }
  const typed = await readPrompt(options.text ?? '', io);
  // A text answers a form as a whole; --value answers its fields separately.
  if (question.fields && question.fields.length > 0) return { response: typed, sent: JSON.stringify(typed) };
  const read = createDialogue(question).give(typed);
  if (read.kind === 'reply') return read;
  // A line that the dialogue would continue with the next line.
  if (read.kind === 'more') return { response: typed, sent: JSON.stringify(typed) };
  if (read.kind !== 'problem') throw refusal('INVALID_ARGUMENT.finish_or_cancel');
  throw refusal('INVALID_ARGUMENT.answer', { problem: `${read.message}${waysOut(typed, question)}` });
}

// Lists the options that name each reading of an ambiguous text.
function waysOut(typed: string, { options }: Question): string {
  const choice = chooseOption(options, typed.trim());
  if (choice.kind !== 'ambiguous') return '';
  const { optionSends, valueSends } = terminalTexts();
  const ways = choice.readings.map(({ place, option }) => optionSends(place, JSON.stringify(option.value)));
  return valueSends(ways.join(', '));
}

// The cursor right before the pending question.
export async function beforeQuestion(data: DataDir, run: RunRecord): Promise<number> {
  const journal = { runId: run.run_id, protocol: 'fcmp', afterSeq: 0, head: headOf(run, 'fcmp') } as const;
  let asked = 1;
  for await (const { lines } of everyReadable(data.store, journal))
    for (const line of lines) {
      const { type, seq } = readStoredJson(line) as { type: string; seq: number };
      if (type === 'user.input.required') asked = seq;
    }
  return asked - 1;
}

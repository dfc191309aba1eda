// parley inbox: lists the questions that wait for an answer, oldest first, numbered. On a terminal a number chooses
// one; it is answered in place, and the list is shown again until nothing waits or the person leaves.
import { phrase } from '../../messages/phrase.js';
import { unlessDamaged } from '../../kernel/stored-json.js';
import { RequestError, refusal } from '../../run/request-error.js';
import { TAIL_CHARS } from '../../store/run-finder.js';
import type { InteractionRecord, RunRecord } from '../../store/store.js';
import { confirmSent } from '../../terminal/answer.js';
import { formatAge } from '../../terminal/format-time.js';
import { renderQuestion, type Question } from '../../terminal/question-text.js';
import { oneLine, safeText } from '../../terminal/safe-text.js';
import { paint } from '../../terminal/style.js';
import { renderTable, type Column } from '../../terminal/table.js';
import { wrapShown } from '../../terminal/wrap-exact.js';
import { prepareQuestion, replyOf, type Outcome } from './ask-question.js';
import { LineAsker } from './ask.js';
import { cancelRun } from './cancel-run.js';
import { openReader, type DataOption } from '../data-dir.js';
import { shortenIds } from '../reading/find-run.js';
import { EXIT, LineWriter, type Io } from '../io.js';
import type { ReadData } from '../open-data.js';
import { pageRows } from './question-pages.js';
import { startWork } from './start-work.js';
import { styleOf } from '../style.js';
import { runLine } from './tell.js';
import { explainRefusal, texts } from '../language/language.js';

export interface InboxOptions extends DataOption {
  readonly limit: number;
  readonly json?: boolean;
}

interface Item {
  readonly run: RunRecord;
  readonly pending: InteractionRecord;
}

// Built for each table: the language is chosen after this module is loaded.
function columns(): readonly Column[] {
  const { run, waits, engine, wants, question, task } = texts().say.inboxHeaders;
  return [
    { header: '#', align: 'right', whole: true },
    { header: run, whole: true },
    { header: waits, align: 'right', whole: true },
    { header: engine, droppable: true },
    { header: wants, droppable: true },
    { header: question },
    { header: task, droppable: true },
  ];
}

export async function inboxCommand(place: number | undefined, options: InboxOptions, io: Io): Promise<number> {
  const data = await openReader(options, io);
  const isPerson = io.terminal.stdin && io.terminal.stdout && !options.json;
  try {
    const items = data ? await listItems(data, options.limit) : [];
    if (options.json) return await printLines(items, io);
    if (!data || items.length === 0) {
      io.stderr.write(`${texts().say.nothingWaits}\n`);
      return EXIT.ok;
    }
    if (!isPerson) {
      if (place !== undefined) throw needsTerminal(items[place - 1]);
      io.stdout.write(await renderItems(data, items, io));
      return EXIT.ok;
    }
    return await answerInTurn(data, { first: place ?? null, limit: options.limit }, io);
  } finally {
    await data?.close();
  }
}

function needsTerminal(item: Item | undefined): RequestError {
  const command = `parley reply ${item?.run.run_id ?? 'RUN'} TEXT`;
  return refusal('INVALID_ARGUMENT.inbox_terminal', { command });
}

async function listItems({ store }: ReadData, limit: number): Promise<Item[]> {
  const items: Item[] = [];
  for (const pending of await store.listPending({ limit })) {
    const run = await unlessDamaged(store.loadRun(pending.run_id));
    if (run) items.push({ run, pending });
  }
  return items;
}

async function printLines(items: readonly Item[], io: Io): Promise<number> {
  const writer = new LineWriter(io);
  for (const { run, pending } of items) writer.addLine(runLine(run, pending, io.clock.now()));
  await writer.flush();
  return EXIT.ok;
}

async function renderItems({ store }: ReadData, items: readonly Item[], io: Io): Promise<string> {
  const names = await shortenIds(
    store,
    items.map(({ run }) => run.run_id),
  );
  const now = io.clock.now();
  const rows = items.map(({ run, pending }, index) => {
    const question = pending.question as unknown as Question;
    const kind = question.channel === 'conversation' ? 'conversation' : question.kind;
    const wants = texts().say.inboxKinds[kind] ?? kind;
    const waited = formatAge(now - pending.asked_at);
    const age = now > pending.due_at ? texts().say.overdue(waited) : waited;
    return [
      String(index + 1),
      names.get(run.run_id) ?? run.run_id,
      age,
      run.spec.engine,
      wants,
      question.prompt,
      run.spec.prompt,
    ];
  });
  return renderTable(rows, columns(), styleOf(io));
}

// Answers the question with the number `first`, then asks for the next number. A number stays valid between two lists,
// because new questions are added at the end.
async function answerInTurn(
  data: ReadData,
  { first, limit }: { readonly first: number | null; readonly limit: number },
  io: Io,
): Promise<number> {
  let place = first;
  for (;;) {
    const items = await listItems(data, limit);
    if (items.length === 0) {
      io.stderr.write(`${texts().say.nothingWaitsNow}\n`);
      return EXIT.ok;
    }
    if (place === null) {
      io.stdout.write(await renderItems(data, items, io));
      place = await choosePlace(items.length, io);
      if (place === null) return EXIT.ok;
    }
    const item = items[place - 1];
    if (!item) {
      const waiting = items.length === 1 ? phrase('one_is') : phrase('are_count', { count: items.length });
      throw refusal('INVALID_ARGUMENT.inbox_place', { place, waiting });
    }
    await answerOne(data, item, io);
    place = null;
  }
}

// Returns null if the person leaves.
async function choosePlace(count: number, io: Io): Promise<number | null> {
  const asker = new LineAsker(io);
  try {
    for (;;) {
      const typed = await asker.ask(texts().say.inboxPrompt(`1${count > 1 ? `-${count}` : ''}`));
      const text = typed.kind === 'line' ? typed.text.trim() : '';
      if (text === '' || text === 'q') return null;
      if (/^\d{1,9}$/.test(text) && Number(text) >= 1 && Number(text) <= count) return Number(text);
      io.stderr.write(`${texts().say.noSuchQuestion(safeText(text), count)}\n`);
    }
  } finally {
    asker.close();
  }
}

async function answerOne(data: ReadData, { run, pending }: Item, io: Io): Promise<void> {
  const question = pending.question as unknown as Question;
  const task = `${run.run_id.slice(-TAIL_CHARS)}  ${run.spec.engine} in ${run.spec.cwd}: ${run.spec.prompt}`;
  io.stdout.write(`\n${paint(styleOf(io), 'dim', oneLine(task, styleOf(io).width))}\n`);
  const lines = renderQuestion(question, styleOf(io)).split('\n');
  const shown = question.kind === 'approval' ? lines.slice(0, pageRows(io)) : lines;
  io.stdout.write(`${shown.join('\n')}\n`);
  const asker = new LineAsker(io);
  try {
    await asker.forgetTyped();
    const askAgain = prepareQuestion({ question, asker }, io);
    while (!(await applyOutcome(data, { run, pending, outcome: await askAgain() }, io)));
  } finally {
    asker.close();
  }
}

// Returns false if the reply could not be sent and the person may try again.
async function applyOutcome(
  data: ReadData,
  { run, pending, outcome }: Item & { readonly outcome: Outcome },
  io: Io,
): Promise<boolean> {
  if (outcome.kind === 'cancel') await cancelRun(data.path, run.run_id, io);
  if (outcome.kind !== 'reply' && outcome.kind !== 'finish') return true;
  const reply = replyOf(pending.interaction_id, outcome);
  try {
    await startWork({ data: data.path, job: { type: 'reply', run_id: run.run_id, reply } }, io);
    const sent = outcome.kind === 'reply' ? confirmSent(outcome) : texts().say.finished;
    io.stderr.write(`${wrapShown(sent, styleOf(io, 'stderr').width)}\n\n`);
    return true;
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    io.stderr.write(`${safeText(explainRefusal(error).message)}\n`);
    return error.code === 'RUN_NOT_WAITING' || error.code === 'INTERACTION_STALE';
  }
}

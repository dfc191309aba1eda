// Runs and questions as lists show them: each part is bounded, whatever a caller or an engine wrote into it. A small
// JSON column comes with its row; a large one is read by itself, once, and only its short form is kept. Specs, errors,
// results, questions and resolutions are written once, so a short form stays valid.
import type { Json, JsonObject } from '../kernel/json.js';
import { DamagedDataError, readStoredJson } from '../kernel/stored-json.js';
import type { RunError } from '../run/run-error.js';
import { toInteraction, toRun, type InteractionRow, type RunRow } from './rows.js';
import type { Resolution, RunSpec } from './store.js';
import { isQuestion, isResolution, isResult, isRunError, isSpec } from './stored-shapes.js';
import type { InteractionSummary, RunSummary, ShortenedPart } from './summary-reader.js';

// A column up to this size is read with its row.
const WHOLE_BYTES = 16 * 1024;
// A question up to this size is listed completely, so that most can be answered from the list.
const QUESTION_CHARS = 16 * 1024;
const TEXT_CHARS = 1000;
const JSON_CHARS = 2000;
const LABEL_CHARS = 4000;
// Short forms of large columns that are cached, at most a few kilobytes each.
const KEPT = 1000;

// Shortens a column of the right shape; null: it has another shape.
type Form = (value: unknown) => Shortened<unknown> | null;

interface Shortened<T> {
  readonly value: T;
  readonly parts: readonly ShortenedPart[];
}

type RunColumn = 'spec_json' | 'error_json' | 'result_json';
type InteractionColumn = 'question_json' | 'resolution_json';

// A row whose large columns are null; the `_bytes` columns have their true sizes.
export type RunSummaryRow = Omit<RunRow, 'spec_json'> & { readonly spec_json: string | null } & Readonly<
    Record<`${RunColumn}_bytes`, number | null>
  >;
export type InteractionSummaryRow = Omit<InteractionRow, 'question_json'> & {
  readonly question_json: string | null;
} & Readonly<Record<`${InteractionColumn}_bytes`, number | null>>;

export const RUN_COLUMNS: readonly RunColumn[] = ['spec_json', 'error_json', 'result_json'];
export const INTERACTION_COLUMNS: readonly InteractionColumn[] = ['question_json', 'resolution_json'];

// Selects the column if it is small, and its size. Neither database reads a large value for its octet_length.
export function smallColumn(column: string): string {
  return (
    `CASE WHEN octet_length(${column}) <= ${WHOLE_BYTES} THEN ${column} END AS ${column}, ` +
    `octet_length(${column}) AS ${column}_bytes`
  );
}

type LoadColumn<C extends string> = (column: C) => Promise<string | null>;

export class Summaries {
  // By the id of the row and the column; the least recently used goes first.
  readonly #kept = new Map<string, Shortened<string>>();

  async run(row: RunSummaryRow, load: LoadColumn<RunColumn>): Promise<RunSummary | null> {
    const parts = new Set<ShortenedPart>();
    const whole = await this.#complete({ row, id: row.run_id, columns: RUN_COLUMNS, shorten: RUN_FORMS, parts, load });
    if (whole === null) return null;
    const run = toRun(whole as unknown as RunRow);
    const [spec, error, result] = [
      shortenSpec(run.spec),
      run.error && shortenError(run.error),
      shortenJson(run.result, 'result'),
    ];
    for (const each of [spec, error, result]) for (const part of each?.parts ?? []) parts.add(part);
    return { ...run, spec: spec.value, error: error?.value ?? null, result: result.value, truncated: [...parts] };
  }

  async interaction(
    row: InteractionSummaryRow,
    load: LoadColumn<InteractionColumn>,
  ): Promise<InteractionSummary | null> {
    const parts = new Set<ShortenedPart>();
    const whole = await this.#complete({
      row,
      id: row.interaction_id,
      columns: INTERACTION_COLUMNS,
      shorten: INTERACTION_FORMS,
      parts,
      load,
    });
    if (whole === null) return null;
    const interaction = toInteraction(whole as unknown as InteractionRow);
    const [question, resolution] = [
      shortenQuestion(interaction.question),
      interaction.resolution && shortenResolution(interaction.resolution),
    ];
    for (const each of [question, resolution]) for (const part of each?.parts ?? []) parts.add(part);
    return { ...interaction, question: question.value, resolution: resolution?.value ?? null, truncated: [...parts] };
  }

  // The row with the short form of each large column. Null: the row was deleted meanwhile.
  async #complete<C extends string>({
    row,
    id,
    columns,
    shorten,
    parts,
    load,
  }: {
    readonly row: object;
    readonly id: string;
    readonly columns: readonly C[];
    readonly shorten: Readonly<Record<C, Form>>;
    readonly parts: Set<ShortenedPart>;
    readonly load: LoadColumn<C>;
  }): Promise<object | null> {
    const texts: Partial<Record<C, string>> = {};
    for (const column of columns) {
      const bytes = (row as Record<string, unknown>)[`${column}_bytes`];
      if (typeof bytes !== 'number' || bytes <= WHOLE_BYTES) continue;
      const key = `${id} ${column}`;
      const short =
        this.#recall(key) ??
        (await this.#shorten(key, { name: `${column} of ${id}`, load: () => load(column), shorten: shorten[column] }));
      if (short === null) return null;
      texts[column] = short.value;
      for (const part of short.parts) parts.add(part);
    }
    return { ...row, ...texts };
  }

  // Loads a large column and keeps its short form under the key. Null: the row was deleted meanwhile.
  async #shorten(
    key: string,
    {
      name,
      load,
      shorten,
    }: { readonly name: string; readonly load: () => Promise<string | null>; readonly shorten: Form },
  ): Promise<Shortened<string> | null> {
    const text = await load();
    if (text === null) return null;
    const shortened = shorten(readStoredJson(text, name));
    if (shortened === null) throw new DamagedDataError(`${name} does not have the form it was written in`);
    const short = { value: JSON.stringify(shortened.value), parts: shortened.parts };
    this.#kept.set(key, short);
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > KEPT && oldest !== undefined) this.#kept.delete(oldest);
    return short;
  }

  #recall(key: string): Shortened<string> | undefined {
    const short = this.#kept.get(key);
    if (short) {
      this.#kept.delete(key);
      this.#kept.set(key, short);
    }
    return short;
  }
}

const RUN_FORMS = {
  spec_json: formOf(isSpec, shortenSpec),
  error_json: formOf(isRunError, shortenError),
  result_json: formOf(isResult, (value) => shortenJson(value, 'result')),
};
const INTERACTION_FORMS = {
  question_json: formOf(isQuestion, shortenQuestion),
  resolution_json: formOf(isResolution, shortenResolution),
};

function formOf<T>(fits: (value: unknown) => value is T, shorten: (value: T) => Shortened<unknown>): Form {
  return (value) => (fits(value) ? shorten(value) : null);
}

function shortenSpec({ output_schema: _schema, ...spec }: RunSpec): Shortened<RunSpec> {
  const prompt = cut(spec.prompt);
  const labels = shortenLabels(spec.labels);
  const parts: ShortenedPart[] = [
    ...(prompt === spec.prompt ? [] : ['prompt' as const]),
    ...(labels === spec.labels ? [] : ['labels' as const]),
  ];
  return { value: { ...spec, prompt, labels }, parts };
}

// As many complete labels as fit.
function shortenLabels(labels: RunSpec['labels']): RunSpec['labels'] {
  const entries = Object.entries(labels ?? {});
  let room = LABEL_CHARS;
  const kept = entries.filter(([name, value]) => (room -= name.length + value.length) >= 0);
  return kept.length === entries.length ? labels : Object.fromEntries(kept);
}

function shortenError(error: RunError): Shortened<RunError> {
  const message = cut(error.message);
  const { details, values, ...rest } = error;
  if (message === error.message && !isLong(details) && !isLong(values)) return { value: error, parts: [] };
  const value = {
    ...rest,
    message,
    ...(values === undefined || isLong(values) ? {} : { values }),
    ...(details === undefined || isLong(details) ? {} : { details }),
  };
  return { value, parts: ['error'] };
}

function isLong(part: object | undefined): boolean {
  return part !== undefined && JSON.stringify(part).length > JSON_CHARS;
}

function shortenJson(value: Json, part: 'result' | 'answer'): Shortened<Json> {
  if (value === null || JSON.stringify(value).length <= JSON_CHARS) return { value, parts: [] };
  return { value: typeof value === 'string' ? cut(value) : null, parts: [part] };
}

// Enough to recognise the question, never enough to answer it.
function shortenQuestion(question: JsonObject): Shortened<JsonObject> {
  if (JSON.stringify(question).length <= QUESTION_CHARS) return { value: question, parts: [] };
  const { kind = 'open_text', prompt, channel } = question;
  const value = {
    kind,
    prompt: cut(typeof prompt === 'string' ? prompt : ''),
    options: [],
    ...(channel === undefined ? {} : { channel }),
  };
  return { value, parts: ['question'] };
}

function shortenResolution(resolution: Resolution): Shortened<Resolution> {
  const { value, parts } = shortenJson(resolution.response, 'answer');
  return { value: { ...resolution, response: value }, parts };
}

// Never splits a surrogate pair.
function cut(text: string): string {
  if (text.length <= TEXT_CHARS) return text;
  const isHigh = /[\uD800-\uDBFF]/.test(text.charAt(TEXT_CHARS - 1));
  return text.slice(0, isHigh ? TEXT_CHARS - 1 : TEXT_CHARS);
}

// JSON Schemas from outside: of callers (output_schema) and of engines (response_schema). They are compiled and run
// only in worker threads, under a deadline, so that no schema holds up the service or ends it.
//
// Two lanes, each with one thread. Every check starts in the quick lane, where it has a quarter of a second: honest
// schemas need a few milliseconds, so a hostile one delays others by that quarter and not by its whole deadline. Checks
// that miss it go on in the patient lane, among their own kind, and later checks of the same schema start there. In
// both lanes callers take turns and each may have a few checks waiting; checks of turns that ended go first. Two
// threads at most, however many checks there are: a thread for each check would let a caller start as many as it likes,
// and take all cores from the turns.
import { createHash } from 'node:crypto';
import { isDeeperThan } from '../kernel/json.js';
import { clip } from '../kernel/redact.js';
import { explainSchemaErrors } from '../messages/explain-schema-errors.js';
import type { Phrase } from '../kernel/fill-template.js';
import { inOne, phrase } from '../messages/phrase.js';
import { refusal } from '../run/request-error.js';
import { CheckLane, type CheckAnswer, type CheckJob, type Unusable } from './check-lane.js';
import { explainBounds } from './schema-bounds.js';

// Behind eight slow schemas, a caller waits about half a minute.
const LIMITS = { quickMs: 250, patientMs: 3000, mostWaiting: 8, mostPerCaller: 64 };
// How many schemas that missed the quick deadline are remembered.
const MOST_SLOW = 1000;
// A result of 4 Mi characters takes up to 60 MiB as values.
const THREAD = { idleMs: 20_000, cache: 64, memoryMb: 192 };
// An assembled message of an engine ends at 4 Mi characters.
const MAX_VALUE_CHARS = 8 * 1024 * 1024;

export interface ValueCheck {
  readonly schema: object | boolean;
  readonly value: unknown;
  // The name of the value in the explanation.
  readonly name: Phrase;
  // The caller that waits for the result, as a key; checks without a key share one place in the queue.
  readonly caller?: string;
  // The caller cannot repeat the check, so it is never refused and runs before checks that can be repeated. The number
  // of such checks must be limited elsewhere.
  readonly mustRun?: boolean;
}

export class SchemaChecks {
  readonly #quick: CheckLane;
  readonly #patient: CheckLane;
  // In seconds.
  readonly #deadline: number;
  readonly #mostWaiting: number;
  readonly #mostPerCaller: number;
  // Digests of schemas that missed the quick deadline, the oldest first.
  readonly #slow = new Set<string>();

  constructor({
    quickMs,
    patientMs,
    mostWaiting,
    mostPerCaller,
  }: Omit<typeof LIMITS, 'mostPerCaller'> & Partial<typeof LIMITS> = LIMITS) {
    this.#mostWaiting = mostWaiting;
    this.#mostPerCaller = mostPerCaller ?? LIMITS.mostPerCaller;
    this.#quick = new CheckLane({ ...THREAD, deadlineMs: quickMs });
    this.#patient = new CheckLane({ ...THREAD, deadlineMs: patientMs });
    this.#deadline = patientMs / 1000;
  }

  // Returns why Parley cannot use this schema, as the ends of sentences ("…: it is nested deeper than 64 levels"), or
  // null if it can. Throws a RequestError (QUEUE_FULL) while too many checks of this caller, or too many slow ones, are
  // waiting.
  async explainSchema(schema: object | boolean, caller?: string): Promise<readonly Phrase[] | null> {
    const bounds = explainBounds(schema);
    if (bounds !== null) return [bounds];
    const answer = await this.#check(jobOf(schema), { caller });
    if (answer.overdue) return [phrase('schema_slow', { limit: this.#deadline })];
    return answer.unusable ? explainUnusable(answer.unusable, schema) : null;
  }

  // Returns the problems as sentences, or null if the value is valid.
  async explainValue(check: ValueCheck): Promise<readonly Phrase[] | null> {
    const { schema, value, name, caller, mustRun = false } = check;
    const bounds = explainBounds(schema);
    if (bounds !== null) return unusable([bounds]);
    if (isDeeperThan(value)) return [phrase('value_depth', { field: name, limit: 200 })];
    const text = JSON.stringify(value);
    if (text.length > MAX_VALUE_CHARS)
      return [phrase('value_size', { field: name, limit: MAX_VALUE_CHARS / 1024 / 1024 })];
    const answer = await this.#check({ ...jobOf(schema), value: text }, { caller, first: mustRun });
    if (answer.overdue) return [phrase('value_slow', { field: name, limit: this.#deadline })];
    if (answer.unusable) return unusable(explainUnusable(answer.unusable, schema));
    return answer.findings ? explainSchemaErrors(answer.findings, { name, value }) : null;
  }

  async #check(
    job: CheckJob,
    { caller = '', first = false }: { readonly caller?: string | undefined; readonly first?: boolean },
  ): Promise<CheckAnswer> {
    if (!this.#slow.has(job.digest)) {
      if (!first && this.#quick.waitingOf(caller) >= this.#mostPerCaller)
        throw refusal('QUEUE_FULL.schemas', { count: this.#mostPerCaller });
      const quick = await this.#quick.run(job, { caller, first });
      if (!quick.overdue) return quick;
      this.#rememberSlow(job.digest);
    }
    if (!first && this.#patient.waiting >= this.#mostWaiting)
      throw refusal('QUEUE_FULL.slow_schemas', { count: this.#mostWaiting });
    // Limits each caller, so that slow schemas of others also get a place.
    const own = Math.max(1, Math.floor(this.#mostWaiting / 2));
    if (!first && this.#patient.waitingOf(caller) >= own)
      throw refusal('QUEUE_FULL.slow_schemas_caller', { count: own });
    return this.#patient.run(job, { caller, first });
  }

  #rememberSlow(digest: string): void {
    this.#slow.add(digest);
    if (this.#slow.size > MOST_SLOW) this.#slow.delete(this.#slow.values().next().value ?? '');
  }
}

// One instance per process: the limit of threads protects the whole machine.
export const schemaChecks = new SchemaChecks();

function jobOf(schema: object | boolean): CheckJob {
  const text = JSON.stringify(schema);
  return { digest: createHash('sha256').update(text).digest('hex'), schema: text };
}

function unusable(problems: readonly Phrase[]): readonly Phrase[] {
  return [phrase('schema_unusable', { problem: inOne(problems) })];
}

function explainUnusable({ problem, detail = '', errors = [] }: Unusable, schema: object | boolean): readonly Phrase[] {
  switch (problem) {
    case 'form':
      return explainSchemaErrors(errors, { name: phrase('schema'), value: schema });
    case 'async':
      return [phrase('schema_keyword', { keyword: '$async' })];
    case 'recursion':
      return [phrase('schema_recursion')];
    case 'pattern':
      return [phrase('schema_pattern')];
    case 'reference':
      return [phrase('schema_reference', { reference: clip(JSON.stringify(detail), 100) })];
    case 'memory':
      return [phrase('schema_memory')];
    case 'other':
      return [phrase('schema_other')];
    default:
      return problem satisfies never;
  }
}

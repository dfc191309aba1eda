// Tokens and cost of the turns that this process ran, counted from the usage events as they are stored. Figures that
// cover a whole conversation are counted by their growth; where the beginning of a conversation is not known, its first
// figures count nothing, so the totals may be too small but never too large. A restart begins at zero.
import { isObject, parseJson } from '../../kernel/json.js';
import type { RaspData, RaspEvent } from '../../rasp/event.js';
import type { JournalFlush } from '../../store/store.js';
import { Counter } from './prometheus.js';

type Usage = RaspData['agent.usage'];

const SIGN = '"agent.usage"';
const KINDS = [
  ['input_tokens', 'input'],
  ['cached_input_tokens', 'cached_input'],
  ['output_tokens', 'output'],
  ['reasoning_tokens', 'reasoning'],
] as const;
// Conversations whose last figures are kept.
const KEPT = 5000;

export class UsageMetrics {
  readonly tokens = new Counter({
    name: 'parley_tokens_total',
    help:
      'Tokens that engines reported in turns of this process since its start; cached input and reasoning are ' +
      'parts of input and output',
  });
  readonly cost = new Counter({
    name: 'parley_cost_usd_total',
    help: 'Cost in US dollars that engines reported in turns of this process since its start',
  });
  // By run: the figures of its conversation so far. A run that began here begins at zero.
  readonly #threads = new Map<string, Usage | null>();

  // A run that was created here and continues no other: its conversation begins with it.
  began(runId: string): void {
    this.#threads.set(runId, null);
    const [oldest] = this.#threads.keys();
    if (this.#threads.size > KEPT && oldest !== undefined) this.#threads.delete(oldest);
  }

  ended(runId: string): void {
    this.#threads.delete(runId);
  }

  add(runId: string, { rasp: { bytes } }: JournalFlush): void {
    if (!bytes.includes(SIGN)) return;
    for (const line of bytes.toString('utf8').split('\n')) {
      const event = line.includes(SIGN) ? (parseJson(line) as unknown as RaspEvent | undefined) : undefined;
      if (event?.event.type === 'agent.usage' && isObject(event.data))
        this.#count(runId, event.source.engine, event.data as unknown as Usage);
    }
  }

  #count(runId: string, engine: string, usage: Usage): void {
    const before = this.#before(runId, usage);
    if (before === undefined) return;
    const grown = (name: keyof Usage): number => Math.max(0, numberOf(usage[name]) - numberOf(before?.[name]));
    for (const [name, kind] of KINDS) if (grown(name) > 0) this.tokens.inc({ engine, kind }, grown(name));
    if (grown('cost_usd') > 0) this.cost.inc({ engine }, grown('cost_usd'));
  }

  // What has been counted before; undefined: that is not known.
  #before(runId: string, usage: Usage): Usage | null | undefined {
    if (usage.scope !== 'thread') return null;
    const before = this.#threads.get(runId);
    this.#threads.delete(runId);
    this.#threads.set(runId, usage);
    return before;
  }
}

function numberOf(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) ? value : 0;
}

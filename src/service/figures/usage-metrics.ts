// Counts tokens and cost of the turns that this process ran, from the usage events as they are stored. Cumulative
// figures of a conversation are counted by their growth. If the start of a conversation is unknown, its first figures
// only set the baseline, so totals may be too small but never too large. A restart begins at zero.
import { isObject, parseJson } from '../../kernel/json.js';
import type { RaspData, RaspEvent } from '../../rasp/event.js';
import type { JournalFlush } from '../../store/store.js';
import { METRICS } from './metric-list.js';
import { Counter } from './prometheus.js';

type Usage = RaspData['agent.usage'];

const SIGN = '"agent.usage"';
const KINDS = [
  ['input_tokens', 'input'],
  ['cached_input_tokens', 'cached_input'],
  ['output_tokens', 'output'],
  ['reasoning_tokens', 'reasoning'],
] as const;
// The most conversations whose latest figures are kept.
const KEPT = 5000;

export class UsageMetrics {
  readonly tokens = new Counter(METRICS.tokens);
  readonly cost = new Counter(METRICS.cost);
  // The latest cumulative figures of each conversation, by run id. Null: the conversation started here, at zero.
  readonly #threads = new Map<string, Usage | null>();

  // Records that the conversation of this run starts with it.
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

  // The figures that were counted before; undefined if unknown.
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

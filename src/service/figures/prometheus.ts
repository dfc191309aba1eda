// Metrics in the text format of Prometheus: counters, gauges and histograms, each with labels. Only what Parley needs
// of it.

export type Labels = Readonly<Record<string, string>>;

export const CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

export interface Metric {
  readonly name: string;
  readonly help: string;
}

abstract class Family {
  readonly name: string;
  readonly #help: string;
  abstract readonly type: 'counter' | 'gauge' | 'histogram';

  constructor({ name, help }: Metric) {
    this.name = name;
    this.#help = help;
  }

  text(): string {
    return [`# HELP ${this.name} ${this.#help}`, `# TYPE ${this.name} ${this.type}`, ...this.samples(), ''].join('\n');
  }

  protected abstract samples(): string[];
}

// A value for each combination of labels.
abstract class Values extends Family {
  protected readonly values = new Map<string, number>();

  protected samples(): string[] {
    return [...this.values].map(([labels, value]) => `${this.name}${labels} ${value}`);
  }
}

export class Counter extends Values {
  readonly type = 'counter';

  inc(labels: Labels = {}, by = 1): void {
    const key = textOf(labels);
    this.values.set(key, (this.values.get(key) ?? 0) + by);
  }

  // For a total that is kept elsewhere.
  setAll(values: Iterable<readonly [Labels, number]>): void {
    this.values.clear();
    for (const [labels, value] of values) this.values.set(textOf(labels), value);
  }
}

export class Gauge extends Values {
  readonly type = 'gauge';

  setAll(values: Iterable<readonly [Labels, number]>): void {
    this.values.clear();
    for (const [labels, value] of values) this.values.set(textOf(labels), value);
  }
}

interface Observed {
  readonly labels: Labels;
  // How many were at most as large as each bound; the last counts all.
  readonly counts: number[];
  sum: number;
}

export class Histogram extends Family {
  readonly type = 'histogram';
  readonly #bounds: readonly number[];
  readonly #observed = new Map<string, Observed>();

  constructor(metric: Metric & { readonly buckets: readonly number[] }) {
    super(metric);
    this.#bounds = [...metric.buckets, Infinity];
  }

  observe(labels: Labels, value: number): void {
    const key = textOf(labels);
    const observed = this.#observed.get(key) ?? { labels, counts: this.#bounds.map(() => 0), sum: 0 };
    this.#observed.set(key, observed);
    observed.sum += value;
    for (const [index, bound] of this.#bounds.entries())
      if (value <= bound) observed.counts[index] = (observed.counts[index] ?? 0) + 1;
  }

  protected samples(): string[] {
    const lines: string[] = [];
    for (const [key, { labels, counts, sum }] of this.#observed) {
      for (const [index, bound] of this.#bounds.entries())
        lines.push(
          `${this.name}_bucket${textOf({ le: bound === Infinity ? '+Inf' : String(bound), ...labels })} ` +
            `${counts[index]}`,
        );
      lines.push(`${this.name}_sum${key} ${sum}`, `${this.name}_count${key} ${counts.at(-1)}`);
    }
    return lines;
  }
}

function textOf(labels: Labels): string {
  const pairs = Object.entries(labels).map(
    ([name, value]) => `${name}="${value.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('"', '\\"')}"`,
  );
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`;
}

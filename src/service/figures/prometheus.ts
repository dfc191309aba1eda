// Counters, gauges and histograms with labels, in the text format of Prometheus. Covers only the parts of the format
// that Parley uses.

// A value for each label of a metric.
export type Labels<Name extends string = string> = Readonly<Record<Name, string>>;

export const CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

export interface Metric<Name extends string = string> {
  readonly name: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly labels: readonly Name[];
  readonly help: string;
}

export interface HistogramMetric<Name extends string = string> extends Metric<Name> {
  readonly type: 'histogram';
  readonly buckets: readonly number[];
}

abstract class Family<Type extends Metric['type'], Name extends string> {
  readonly name: string;
  readonly #type: Type;
  readonly #help: string;

  constructor({ name, type, help }: Metric<Name> & { readonly type: Type }) {
    this.name = name;
    this.#type = type;
    this.#help = help;
  }

  text(): string {
    return [`# HELP ${this.name} ${this.#help}`, `# TYPE ${this.name} ${this.#type}`, ...this.samples(), ''].join('\n');
  }

  protected abstract samples(): string[];
}

// A value for each combination of labels.
abstract class Values<Type extends Metric['type'], Name extends string> extends Family<Type, Name> {
  protected readonly values = new Map<string, number>();

  setAll(values: Iterable<readonly [Labels<Name>, number]>): void {
    this.values.clear();
    for (const [labels, value] of values) this.values.set(textOf(labels), value);
  }

  protected samples(): string[] {
    return [...this.values].map(([labels, value]) => `${this.name}${labels} ${value}`);
  }
}

// `setAll` is for a total that is kept elsewhere.
export class Counter<Name extends string = string> extends Values<'counter', Name> {
  inc(labels: Labels<Name>, by = 1): void {
    const key = textOf(labels);
    this.values.set(key, (this.values.get(key) ?? 0) + by);
  }
}

export class Gauge<Name extends string = string> extends Values<'gauge', Name> {}

interface Observed {
  readonly labels: Labels;
  // How many values were at most as large as each bound; the last bound counts all.
  readonly counts: number[];
  sum: number;
}

export class Histogram<Name extends string = string> extends Family<'histogram', Name> {
  readonly #bounds: readonly number[];
  readonly #observed = new Map<string, Observed>();

  constructor(metric: HistogramMetric<Name>) {
    super(metric);
    this.#bounds = [...metric.buckets, Infinity];
  }

  observe(labels: Labels<Name>, value: number): void {
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

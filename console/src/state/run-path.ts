// The path of a run through the state chart: how often it was in each state and took each edge, and how each turn spent
// its time.
import type { FcmpData } from '../../../src/fcmp/event.js';

type Change = FcmpData['conversation.state.changed'];
export type State = Change['to'];

export interface Span {
  readonly state: State;
  readonly from: number;
  // Null for the current state.
  to: number | null;
}

export interface Attempt {
  readonly number: number;
  readonly spans: Span[];
}

const ENDS: ReadonlySet<State> = new Set<State>(['succeeded', 'failed', 'canceled']);

export function isEnd(state: State): boolean {
  return ENDS.has(state);
}

export class RunPath {
  state: State = 'queued';
  readonly visits = new Map<State, number>();
  // The keys come from edgeKey().
  readonly edges = new Map<string, number>();
  readonly attempts: Attempt[] = [];

  begin(at: string): void {
    this.visits.set('queued', 1);
    this.#open('queued', Date.parse(at));
  }

  // Returns how long the previous state lasted.
  move({ from, to, updated_at: at }: Change): number {
    const time = Date.parse(at);
    const last = this.attempts.at(-1)?.spans.at(-1);
    if (last?.to === null) last.to = time;
    this.state = to;
    this.visits.set(to, (this.visits.get(to) ?? 0) + 1);
    const key = edgeKey(from, to);
    this.edges.set(key, (this.edges.get(key) ?? 0) + 1);
    if (!isEnd(to)) this.#open(to, time);
    return last ? time - last.from : 0;
  }

  // How long the run waited for people.
  waitedMs(now: number): number {
    return this.spentIn('waiting_user', now);
  }

  spentIn(state: State, now: number): number {
    return this.attempts
      .flatMap(({ spans }) => spans)
      .filter((span) => span.state === state)
      .reduce((sum, span) => sum + spanMs(span, now), 0);
  }

  // Each time the run is queued, another turn begins.
  #open(state: State, from: number): void {
    let attempt = this.attempts.at(-1);
    if (!attempt || state === 'queued') this.attempts.push((attempt = { number: this.attempts.length + 1, spans: [] }));
    attempt.spans.push({ state, from, to: null });
  }
}

export function edgeKey(from: string, to: string): string {
  return `${from}>${to}`;
}

export function spanMs({ from, to }: Span, now: number): number {
  return Math.max(0, (to ?? now) - from);
}

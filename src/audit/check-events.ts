// The checks that need only the events: their form, their order, and their path through the state chart.
import { canonicalText } from '../kernel/json.js';
import type { RaspData, RaspEvent } from '../rasp/event.js';
import { explainRasp } from '../rasp/validate.js';
import { INITIAL_STATE, isTerminal, type Edge } from '../run/statechart.js';
import { waitPolicyOf } from '../run/waiting/wait-policy.js';
import type { RunRecord } from '../store/store.js';
import { failed, passed, type Check, type EventCheck } from './check.js';

export class FormCheck implements EventCheck {
  #events = 0;
  #problem: string | null = null;

  event(event: RaspEvent): void {
    this.#events += 1;
    if (this.#problem !== null) return;
    const problem = explainRasp(event);
    if (problem !== null) this.#problem = `event ${this.#events}: ${problem}`;
  }

  finish(): Check {
    return this.#problem === null ? passed('form', 'every event fits rasp/1.0') : failed('form', this.#problem);
  }
}

export class OrderCheck implements EventCheck {
  readonly #runId: string;
  readonly #countFcmp: () => number;
  #events = 0;
  #ts = '';
  #gap: string | null = null;
  #back: string | null = null;

  // `countFcmp` returns how many lines of the conversation are stored.
  constructor(runId: string, countFcmp: () => number) {
    this.#runId = runId;
    this.#countFcmp = countFcmp;
  }

  event({ seq, run_id: runId, ts }: RaspEvent): void {
    const before = this.#events;
    this.#events += 1;
    if (seq !== this.#events || runId !== this.#runId)
      this.#gap ??= `event ${before} is not followed by event ${this.#events} of this run`;
    if (ts < this.#ts) this.#back ??= `event ${this.#events} is dated earlier than the event before it`;
    this.#ts = ts;
  }

  finish({ heads }: RunRecord): Check {
    const fcmp = this.#countFcmp();
    const count =
      this.#events === heads.rasp_seq && fcmp === heads.fcmp_seq
        ? null
        : `the journals have ${this.#events} RASP and ${fcmp} FCMP events, but the row of the run counts ` +
          `${heads.rasp_seq} and ${heads.fcmp_seq}`;
    const problem = this.#gap ?? this.#back ?? count;
    return problem === null ? passed('order', `${this.#events} events without a gap`) : failed('order', problem);
  }
}

export class ChartCheck implements EventCheck {
  readonly #chart: readonly Edge[];
  #state: string = INITIAL_STATE;
  #steps = 0;
  #last: Partial<RaspData['lifecycle.state.changed']> = {};
  #problem: string | null = null;

  constructor({ spec }: RunRecord) {
    this.#chart = waitPolicyOf(spec).chart;
  }

  event({ event, data, seq }: RaspEvent): void {
    if (event.type !== 'lifecycle.state.changed' || this.#problem !== null) return;
    const change = data as unknown as RaspData['lifecycle.state.changed'];
    const { from, to, trigger } = change;
    if (
      from !== this.#state ||
      !this.#chart.some((edge) => edge.from === from && edge.on === trigger && edge.to === to)
    ) {
      this.#problem = `event ${seq}: the chart has no step from ${this.#state} for "${from} to ${to} by ${trigger}"`;
      return;
    }
    this.#state = to;
    this.#steps += 1;
    this.#last = change;
  }

  finish(run: RunRecord): Check {
    const problem = this.#problem ?? this.#explainRun(run);
    if (problem !== null) return failed('chart', problem);
    const ended = isTerminal(run.status) ? 'ended' : 'now';
    return passed(
      'chart',
      `${this.#steps} ${this.#steps === 1 ? 'state change' : 'state changes'}, ${ended} ${this.#state}`,
    );
  }

  #explainRun(run: RunRecord): string | null {
    if (this.#state !== run.status)
      return `the events end in ${this.#state}, but the row of the run says ${run.status}`;
    for (const part of ['error', 'result'] as const)
      if (canonicalText(this.#last[part] ?? null) !== canonicalText(run[part]))
        return `the ${part} in the row of the run differs from its last event`;
    return null;
  }
}

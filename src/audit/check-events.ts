// The checks that need only the events: their form, their order, and their path through the state chart.
import { canonicalText } from '../kernel/json.js';
import type { Message } from '../kernel/message.js';
import type { RaspData, RaspEvent } from '../rasp/event.js';
import { explainRasp } from '../rasp/validate.js';
import { INITIAL_STATE, isTerminal, type Edge } from '../run/statechart.js';
import { waitPolicyOf } from '../run/waiting/wait-policy.js';
import type { RunRecord } from '../store/store.js';
import { failed, passed, type EventCheck, type MadeCheck } from './check.js';
import { finding, stateName } from './findings.js';

export class FormCheck implements EventCheck {
  #events = 0;
  #problem: Message | null = null;

  event(event: RaspEvent): void {
    this.#events += 1;
    if (this.#problem !== null) return;
    const problem = explainRasp(event);
    if (problem !== null) this.#problem = finding('form.event', { event: this.#events, problem });
  }

  finish(): MadeCheck {
    return this.#problem === null ? passed('form', finding('form.passed')) : failed('form', this.#problem);
  }
}

export class OrderCheck implements EventCheck {
  readonly #runId: string;
  readonly #countFcmp: () => number;
  #events = 0;
  #ts = '';
  #gap: Message | null = null;
  #back: Message | null = null;

  // `countFcmp` returns how many lines of the conversation are stored.
  constructor(runId: string, countFcmp: () => number) {
    this.#runId = runId;
    this.#countFcmp = countFcmp;
  }

  event({ seq, run_id: runId, ts }: RaspEvent): void {
    const before = this.#events;
    this.#events += 1;
    if (seq !== this.#events || runId !== this.#runId)
      this.#gap ??= finding('order.gap', { before, event: this.#events });
    if (ts < this.#ts) this.#back ??= finding('order.time', { event: this.#events });
    this.#ts = ts;
  }

  finish({ heads }: RunRecord): MadeCheck {
    const fcmp = this.#countFcmp();
    const count =
      this.#events === heads.rasp_seq && fcmp === heads.fcmp_seq
        ? null
        : finding('order.count', {
            rasp: this.#events,
            fcmp,
            rasp_row: heads.rasp_seq,
            fcmp_row: heads.fcmp_seq,
          });
    const problem = this.#gap ?? this.#back ?? count;
    return problem === null
      ? passed('order', finding('order.passed', { events: this.#events }))
      : failed('order', problem);
  }
}

export class ChartCheck implements EventCheck {
  readonly #chart: readonly Edge[];
  #state: string = INITIAL_STATE;
  #steps = 0;
  #last: Partial<RaspData['lifecycle.state.changed']> = {};
  #problem: Message | null = null;

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
      this.#problem = finding('chart.step', {
        event: seq,
        state: this.#state,
        from: String(from),
        to: String(to),
        trigger: String(trigger),
      });
      return;
    }
    this.#state = to;
    this.#steps += 1;
    this.#last = change;
  }

  finish(run: RunRecord): MadeCheck {
    const problem = this.#problem ?? this.#explainRun(run);
    if (problem !== null) return failed('chart', problem);
    const changes = this.#steps === 1 ? finding('chart.change') : finding('chart.changes', { count: this.#steps });
    return passed(
      'chart',
      finding(isTerminal(run.status) ? 'chart.ended' : 'chart.now', { changes, state: stateName(this.#state) }),
    );
  }

  #explainRun(run: RunRecord): Message | null {
    if (this.#state !== run.status)
      return finding('chart.state', { state: stateName(this.#state), row: stateName(run.status) });
    for (const part of ['error', 'result'] as const)
      if (canonicalText(this.#last[part] ?? null) !== canonicalText(run[part])) return finding(`chart.${part}`);
    return null;
  }
}

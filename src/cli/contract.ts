// parley contract: the chart that the code runs by, and the codes that runs fail with, as JSON.
import { RUN_ERRORS, STICKY_ERRORS } from '../contract/error-codes.js';
import { CHART, EVENTS, INITIAL_STATE, STATES, STICKY_CHART, TERMINAL_STATES } from '../run/statechart.js';
import type { Io } from './io.js';

export function printContract(options: { sticky?: boolean }, io: Io): void {
  const chart = {
    initial: INITIAL_STATE,
    states: STATES,
    terminal: TERMINAL_STATES,
    events: EVENTS,
    edges: options.sticky ? STICKY_CHART : CHART,
    run_errors: Object.entries(options.sticky ? { ...RUN_ERRORS, ...STICKY_ERRORS } : RUN_ERRORS).map(([code, error]) => ({ code, ...error })),
  };
  io.stdout.write(`${JSON.stringify(chart, null, 2)}\n`);
}

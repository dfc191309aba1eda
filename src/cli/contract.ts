// parley contract: the chart that the code runs by, and the codes that runs fail with, as JSON.
import { listRunErrors } from '../run/list-run-errors.js';
import { CHART, EVENTS, INITIAL_STATE, STATES, STICKY_CHART, TERMINAL_STATES } from '../run/statechart.js';
import type { Io } from './io.js';

export function printContract(options: { sticky?: boolean }, io: Io): void {
  const chart = {
    initial: INITIAL_STATE,
    states: STATES,
    terminal: TERMINAL_STATES,
    events: EVENTS,
    edges: options.sticky ? STICKY_CHART : CHART,
    run_errors: listRunErrors(options.sticky ?? false),
  };
  io.stdout.write(`${JSON.stringify(chart, null, 2)}\n`);
}

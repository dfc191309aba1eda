// parley contract: prints the chart of a run and the error codes of failed runs as JSON.
import { EVENTS, INITIAL_STATE, STATES, TERMINAL_STATES } from '../run/statechart.js';
import { contractFor } from '../run/waiting/run-contract.js';
import type { Io } from './io.js';

export function printContract(options: Parameters<typeof contractFor>[0], io: Io): void {
  const { edges, runErrors } = contractFor(options);
  const chart = {
    initial: INITIAL_STATE,
    states: STATES,
    terminal: TERMINAL_STATES,
    events: EVENTS,
    edges,
    run_errors: runErrors,
  };
  io.stdout.write(`${JSON.stringify(chart, null, 2)}\n`);
}

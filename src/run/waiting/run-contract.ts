// The contract of runs that a server or a command publishes: the chart and the error codes, with the extension for
// sticky sessions only where the setting sessions.sticky is on.
import { RUN_ERRORS, type ErrorMeaning } from '../../contract/error-codes.js';
import { CHART, type Edge } from '../statechart.js';
import { STICKY_CHART, STICKY_ERRORS } from './sticky-extension.js';

interface ListedError extends ErrorMeaning {
  readonly code: string;
}

export interface RunContract {
  readonly edges: readonly Edge[];
  readonly runErrors: readonly ListedError[];
  // The codes that the extension adds.
  readonly extraCodes: readonly string[];
  // Runs also show how they wait.
  readonly showsWaiting: boolean;
}

const BASE: RunContract = { edges: CHART, runErrors: list(RUN_ERRORS), extraCodes: [], showsWaiting: false };

const EXTENDED: RunContract = {
  edges: STICKY_CHART,
  runErrors: list({ ...RUN_ERRORS, ...STICKY_ERRORS }),
  extraCodes: Object.keys(STICKY_ERRORS),
  showsWaiting: true,
};

export function contractFor({ sticky = false }: { readonly sticky?: boolean } = {}): RunContract {
  return sticky ? EXTENDED : BASE;
}

function list(errors: Readonly<Record<string, ErrorMeaning>>): ListedError[] {
  return Object.entries(errors).map(([code, { retryable, meaning }]) => ({ code, retryable, meaning }));
}

// Explains a failed result of Claude Code. Errors of the model service come as `subtype: "success"` with
// `is_error: true`; the status of the service or Claude Code's own name of the error decides.
import { asCount, asString, type JsonObject } from '../../kernel/json.js';
import type { EngineFailure } from '../../run/evidence.js';

export interface ServiceState {
  // Claude Code's name of the last error of the service, since the agent last printed something.
  readonly lastError: string | null;
  // A request was repeated since the agent last printed something.
  readonly retrying: boolean;
}

const LIMITS = new Set(['max_turns', 'budget_exhausted']);
const BY_NAME: Readonly<Record<string, EngineFailure['kind']>> = {
  authentication_failed: 'auth',
  rate_limit: 'rate_limit',
};

export function explainFailure(result: JsonObject, service: ServiceState): EngineFailure {
  return { kind: kindOf(result, service), message: messageOf(result) };
}

function kindOf(result: JsonObject, { lastError, retrying }: ServiceState): EngineFailure['kind'] {
  const reason = asString(result.terminal_reason) ?? '';
  if (LIMITS.has(reason)) return 'limit';
  if (reason !== 'api_error') return retrying ? 'service' : 'turn';
  const status = asCount(result.api_error_status);
  if (status === undefined) return BY_NAME[lastError ?? ''] ?? 'service';
  if (status === 401 || status === 403) return 'auth';
  if (status === 429) return 'rate_limit';
  return status >= 400 && status < 500 && status !== 408 ? 'request' : 'service';
}

function messageOf(result: JsonObject): string {
  const errors = Array.isArray(result.errors) ? result.errors.filter((error) => typeof error === 'string') : [];
  return asString(result.result) || errors.join('; ') || asString(result.subtype) || 'the engine reported an error';
}

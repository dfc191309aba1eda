// The shapes of stored values on which other code relies without a check, including HTTP responses. A row that does not
// match is damaged. Unknown members are ignored: a newer version may have written them.
import { raspSchema } from '../contract/schemas.js';
import { isDeeperThan, isObject, type Json, type JsonObject } from '../kernel/json.js';
import { createValidator } from '../messages/validator.js';
import type { RunError } from '../run/run-error.js';
import { isWaitSpec } from '../run/waiting/wait-policy.js';
import type { Actor, Resolution, RunSpec, StoredCancelRequest } from './store.js';

// The end of the year 9999: later times have no timestamp of four digits.
const LATEST_MS = 253_402_300_799_999;
export const STORED_RUN_ID = /^run_[0-9A-Z]{1,26}$/;
export const EXECUTION_MODES = ['auto', 'interactive'] as const;
export const PERMISSIONS = ['read-only', 'workspace-write', 'full'] as const;
export const ACTOR_KINDS = ['user', 'token', 'system'] as const;
const { interaction_kind: interactionKind, option, field, json, 'interaction.requested': requested } = raspSchema.$defs;
export const QUESTION_KINDS = interactionKind.enum;

// Questions are stored as they are in the journal, without their id and time.
const { interaction_id: _id, asked_at: _at, ...members } = requested.properties;
const QUESTION_SCHEMA = {
  $defs: { interaction_kind: interactionKind, option, field, json },
  type: 'object',
  required: ['kind', 'prompt', 'options'],
  properties: members,
};
const QUESTION = createValidator(QUESTION_SCHEMA);

export function isQuestion(value: unknown): value is JsonObject {
  return QUESTION.whole(value) === null && !isTooDeep(value);
}

export function isSpec(value: unknown): value is RunSpec {
  if (!isObject(value)) return false;
  const spec = value;
  return (
    [spec.engine, spec.prompt, spec.cwd].every(isText) &&
    (spec.home === null || isText(spec.home)) &&
    isOneOf(EXECUTION_MODES, spec.execution_mode) &&
    isOneOf(PERMISSIONS, spec.permission) &&
    isObject(spec.runtime_options) &&
    isObject(spec.labels) &&
    Object.values(spec.labels).every(isText) &&
    isAbsentOr(isText, spec.model) &&
    isAbsentOr(isRunId, spec.continue_from) &&
    isAbsentOr(isRunId, spec.retry_of) &&
    isAbsentOr(isForkSource, spec.fork_from) &&
    isWaitSpec(spec)
  );
}

export function isRunError(value: unknown): value is RunError {
  return (
    isObject(value) &&
    isText(value.code) &&
    isText(value.message) &&
    isAbsentOr(isObject, value.values) &&
    isAbsentOr(isText, value.hint) &&
    (value.details === undefined || isObject(value.details)) &&
    !isTooDeep(value)
  );
}

export function isResult(value: unknown): value is Json {
  return value !== undefined && !isTooDeep(value);
}

export function isCancelRequest(value: unknown): value is StoredCancelRequest {
  return (
    isObject(value) &&
    isTime(value.at) &&
    isAbsentOr(isActor, value.actor) &&
    (value.unrecorded === undefined || value.unrecorded === true)
  );
}

export function isResolution(value: unknown): value is Resolution {
  return (
    isObject(value) &&
    isTime(value.at) &&
    isActor(value.actor) &&
    typeof value.finish === 'boolean' &&
    value.response !== undefined &&
    !isTooDeep(value)
  );
}

export function isRunId(value: unknown): value is string {
  return isText(value) && STORED_RUN_ID.test(value);
}

export function isTime(value: unknown): value is number {
  return isCount(value) && value <= LATEST_MS;
}

export function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

// Deeper than anything that Parley stores, and far below the depth at which JSON.stringify fails.
const MOST_DEPTH = 1000;

function isTooDeep(value: unknown): boolean {
  return isDeeperThan(value, MOST_DEPTH);
}

function isForkSource(value: unknown): boolean {
  return isObject(value) && isRunId(value.run_id) && isText(value.session) && isText(value.home);
}

function isActor(value: unknown): value is Actor | null {
  if (value === null) return true;
  return (
    isObject(value) &&
    isOneOf(ACTOR_KINDS, value.kind) &&
    isText(value.name) &&
    (value.token === undefined || isText(value.token))
  );
}

function isAbsentOr(fits: (value: unknown) => boolean, value: unknown): boolean {
  return value === undefined || value === null || fits(value);
}

function isOneOf(all: readonly string[], value: unknown): boolean {
  return all.some((each) => each === value);
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

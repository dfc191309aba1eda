// Turns a person's answer into the result that the server waits for or, if the process that asked has exited, into a
// prompt for the agent. Any JSON is an answer to a question, but an approval accepts only one of the four decisions.
import { invariant } from '../../kernel/invariant.js';
import { asObject, asString, clipDepth, isObject, type Json, type JsonObject } from '../../kernel/json.js';
import type { NativeRequest } from '../native-request.js';
import {
  COMMAND_APPROVAL,
  ELICITATION,
  FILE_CHANGE_APPROVAL,
  PERMISSIONS_APPROVAL,
  readInputQuestions,
  TOOL_CALL,
  USER_INPUT,
} from './requests.js';

const DECISIONS = ['approve', 'approve_for_session', 'decline', 'cancel'] as const;
type Decision = (typeof DECISIONS)[number];

// The server offers to change its own rules as part of an approval; approving one command never does that.
const ACCEPTANCE: Record<Decision, string> = {
  approve: 'accept',
  approve_for_session: 'acceptForSession',
  decline: 'decline',
  cancel: 'cancel',
};
const ACTION: Record<Decision, string> = { ...ACCEPTANCE, approve_for_session: 'accept' };

export function buildAnswer(request: NativeRequest, response: Json): JsonObject {
  const { message, params, question } = request;
  const { method } = message;
  invariant(question !== null, `nobody was asked ${method}`);
  switch (method) {
    case COMMAND_APPROVAL:
    case FILE_CHANGE_APPROVAL:
      return { decision: ACCEPTANCE[readDecision(response)] };
    case PERMISSIONS_APPROVAL:
      return grantPermissions(params, readDecision(response));
    case ELICITATION:
      return question.kind === 'approval'
        ? decideElicitation(params, readDecision(response))
        : fillForm(params, response);
    case USER_INPUT:
      return { answers: answersById(params, response) };
    case TOOL_CALL:
      return { contentItems: [{ type: 'inputText', text: textOf(response) }], success: true };
    default:
      invariant(false, `there is no answer to ${method}`);
  }
}

// Reads the decision of an answer to an approval. Throws if there is none.
function readDecision(response: Json): Decision {
  const value = isObject(response) && Object.hasOwn(response, 'decision') ? response.decision : undefined;
  const decision = DECISIONS.find((known) => known === value);
  invariant(
    decision !== undefined,
    'an approval is decided by {"decision": …} with approve, approve_for_session, decline or cancel',
  );
  return decision;
}

function grantPermissions({ permissions }: JsonObject, decision: Decision): JsonObject {
  if (decision === 'decline' || decision === 'cancel') return { permissions: {}, scope: 'turn' };
  // A request has null for permissions it does not ask for; a grant leaves these members out.
  const asked = Object.fromEntries(Object.entries(asObject(permissions) ?? {}).filter(([, value]) => value !== null));
  return { permissions: asked, scope: decision === 'approve' ? 'turn' : 'session' };
}

function decideElicitation({ mode, _meta: meta }: JsonObject, decision: Decision): JsonObject {
  const isYes = decision === 'approve' || decision === 'approve_for_session';
  const offered = asObject(meta)?.persist;
  // The request states how long an approval may be valid.
  const isForSession =
    decision === 'approve_for_session' &&
    (offered === 'session' || (Array.isArray(offered) && offered.includes('session')));
  return {
    action: ACTION[decision],
    content: isYes && mode !== 'url' ? {} : null,
    _meta: isForSession ? { persist: 'session' } : null,
  };
}

// Only an object fills in a form; any other answer accepts nothing.
function fillForm({ requestedSchema }: JsonObject, response: Json): JsonObject {
  if (!isObject(response)) return { action: 'decline', content: null, _meta: null };
  if (isRefusal(response)) return { action: response.decision ?? 'decline', content: null, _meta: null };
  const properties = asObject(asObject(requestedSchema)?.properties) ?? {};
  const content = Object.entries(response).map(([name, value]): [string, Json] => [
    name,
    isNumber(asObject(properties[name])) && typeof value === 'string' ? Number(value) : value,
  ]);
  return { action: 'accept', content: Object.fromEntries(content), _meta: null };
}

function isRefusal(response: Json): boolean {
  return (
    isObject(response) &&
    Object.hasOwn(response, 'decision') &&
    Object.keys(response).length === 1 &&
    (response.decision === 'decline' || response.decision === 'cancel')
  );
}

function isNumber(property: JsonObject | undefined): boolean {
  return property?.type === 'number' || property?.type === 'integer';
}

function answersById(params: JsonObject, response: Json): JsonObject {
  const questions = readInputQuestions(params);
  const isByIds = isObject(response) && questions.some(({ id }) => Object.hasOwn(response, id));
  // If the answer contains none of the ids, it applies to all questions.
  const entries = questions.map(({ id }): [string, Json] => {
    if (!isByIds) return [id, { answers: textsOf(response) }];
    return [id, { answers: Object.hasOwn(response, id) ? textsOf(response[id] ?? null) : [] }];
  });
  return Object.fromEntries(entries);
}

function textsOf(value: Json): string[] {
  return Array.isArray(value) ? value.map(textOf) : [textOf(value)];
}

function textOf(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(clipDepth(value));
}

// Codex reports to the agent that the user interrupted it on purpose.
const CUT_OFF = '(Your turn was cut off only because it waited long for this answer; nobody wanted you to stop.)';

// `question` is an interaction as it was stored.
export function describeAnswer(question: JsonObject, response: Json): string {
  if (question.kind !== 'approval')
    return `You asked: ${asString(question.prompt) ?? ''}\nThe answer: ${textOf(response)}\n${CUT_OFF}`;
  const decision = readDecision(response);
  const isYes = decision === 'approve' || decision === 'approve_for_session';
  const action =
    question.action === undefined || question.action === null
      ? (asString(question.prompt) ?? '')
      : textOf(question.action);
  const note = asString(asObject(response)?.note);
  return [
    `The person ${isYes ? 'approved' : 'declined'} this action: ${action}`,
    ...(note ? [`Their note: ${note}`] : []),
    isYes
      ? 'Do it now exactly as it was, then go on.'
      : decision === 'cancel'
        ? 'Do not do it. End your turn now.'
        : 'Do not do it. Go on without it.',
    CUT_OFF,
  ].join('\n');
}

// Whether a decision may be used for the same action in another process. Only if the action is fully described: not for
// a change that was not shown, not for input to a running program, and not for an MCP server's own description.
export function carriesOver({ kind, command, changes, permissions }: JsonObject): boolean {
  return (
    (kind === 'command' && typeof command === 'string') ||
    (kind === 'file_change' && Array.isArray(changes)) ||
    (kind === 'permissions' && permissions !== undefined)
  );
}

// Turns a request of the server into a question to a person. A decision is bound to the action of an approval: the
// action has everything that will be done, exactly, and nothing that changes when the same is asked again (ids, times,
// the agent's reasons). A request that a person could not judge from the shown text has no question and must be
// refused.
import { ASK_TOOL } from '../../ask/ask-tool.js';
import type { RequestMessage } from '../../jsonrpc/read-message.js';
import { asObject, asString, isDeeperThan, type Json, type JsonObject } from '../../kernel/json.js';
import { buildApproval, parseQuestion, type Question } from '../../run/interaction.js';
import { joinLines, labelled, oneLine, quoted } from '../approval-text.js';
import type { NativeRequest } from '../native-request.js';
import type { ReaderMemory } from '../turn-parser.js';
import { buildForm } from './elicitation-form.js';
import { itemKey, readChanges } from './file-changes.js';

export const COMMAND_APPROVAL = 'item/commandExecution/requestApproval';
export const FILE_CHANGE_APPROVAL = 'item/fileChange/requestApproval';
export const PERMISSIONS_APPROVAL = 'item/permissions/requestApproval';
export const ELICITATION = 'mcpServer/elicitation/request';
export const USER_INPUT = 'item/tool/requestUserInput';
export const TOOL_CALL = 'item/tool/call';

type Build = (params: JsonObject, memory: ReaderMemory) => Question | null;

const QUESTIONS = new Map<string, Build>([
  [COMMAND_APPROVAL, askForCommand],
  [FILE_CHANGE_APPROVAL, askForFileChange],
  [PERMISSIONS_APPROVAL, askForPermissions],
  [ELICITATION, askForElicitation],
  [USER_INPUT, askForInput],
  [TOOL_CALL, (params) => (params.tool === ASK_TOOL ? parseQuestion(params.arguments, 'native') : null)],
]);

export function readRequest(message: RequestMessage, memory: ReaderMemory): NativeRequest {
  const params = asObject(message.params) ?? {};
  // Could be neither stored nor shown completely, and a partly shown action cannot be approved.
  if (isDeeperThan(params)) return { message, params: {}, question: null };
  return { message, params, question: QUESTIONS.get(message.method)?.(params, memory) ?? null };
}

function askForCommand(params: JsonObject): Question | null {
  // The exact command: the form prepared for people may differ.
  const { command, cwd, environmentId, additionalPermissions, networkApprovalContext: network } = params;
  if (asString(command) === undefined && !asObject(network)) return null;
  const kind = asString(params.kind) ?? 'command';
  const action = withoutNull({
    kind,
    command,
    cwd,
    environment_id: environmentId,
    additional_permissions: additionalPermissions,
    network,
  });
  return buildApproval(
    joinLines(
      kind === 'command' ? 'The agent wants to run a command:' : `The agent wants to use a command (${oneLine(kind)}):`,
      quoted(command),
      labelled('in', cwd),
      labelled('in the environment', environmentId),
      labelled('with network access:', network),
      labelled('with more permissions:', additionalPermissions),
      labelled('Its reason:', params.reason),
    ),
    action,
  );
}

function askForFileChange(params: JsonObject, memory: ReaderMemory): Question | null {
  const itemId = asString(params.itemId);
  if (itemId === undefined) return null;
  const changes = readChanges(memory.items.get(itemKey(params.threadId, itemId))?.changes);
  const isSeen = changes !== undefined && changes.length > 0 && changes.every(({ diff }) => diff !== undefined);
  const about = isSeen
    ? {
        changes: changes.map(({ path, kind, moveTo, diff = '' }) => withoutNull({ path, kind, move_to: moveTo, diff })),
      }
    : { item_id: itemId, diff_seen: false };
  return buildApproval(
    joinLines(
      'The agent wants to change files:',
      ...(isSeen
        ? changes.map(
            ({ path, kind, moveTo }) =>
              `${kind} ${oneLine(path)}${moveTo === undefined ? '' : ` -> ${oneLine(moveTo)}`}`,
          )
        : ['The change itself was not seen and cannot be shown.']),
      labelled('with the right to write from now on under', params.grantRoot),
      labelled('Its reason:', params.reason),
    ),
    withoutNull({ kind: 'file_change', ...about, grant_root: params.grantRoot }),
  );
}

function askForPermissions(params: JsonObject): Question | null {
  const permissions = asObject(params.permissions);
  if (!permissions) return null;
  const prompt = joinLines(
    'The agent wants more permissions:',
    quoted(permissions),
    labelled('in', params.cwd),
    labelled('in the environment', params.environmentId),
    labelled('Its reason:', params.reason),
  );
  return buildApproval(
    prompt,
    withoutNull({ kind: 'permissions', permissions, cwd: params.cwd, environment_id: params.environmentId }),
  );
}

function askForElicitation(params: JsonObject): Question | null {
  const server = asString(params.serverName);
  if (server === undefined) return null;
  const says = labelled('It says:', params.message);
  const approvalKind = asObject(params._meta)?.codex_approval_kind ?? null;
  // Another kind of approval is not a form, whatever it looks like.
  if (approvalKind !== null) return approvalKind === 'mcp_tool_call' ? askForMcpTool(params, server, says) : null;
  if (params.mode === 'url') {
    const url = asString(params.url);
    return url === undefined
      ? null
      : buildApproval(joinLines(`The MCP server ${oneLine(server)} wants you to open a page:`, quoted(url), says), {
          kind: 'open_url',
          server,
          url,
        });
  }
  const isForm = params.mode === 'form' || params.mode === 'openai/form' || params.mode === 'openaiForm';
  return isForm
    ? buildForm(
        params.requestedSchema,
        joinLines(`The MCP server ${oneLine(server)} wants to know something from you.`, says),
      )
    : null;
}

// A server's description of itself is marked as such and placed below the known facts.
function askForMcpTool(params: JsonObject, server: string, says: string | null): Question {
  const { tool_params: toolParams, tool_name: tool } = asObject(params._meta) ?? {};
  const prompt = joinLines(
    `The agent wants to call a tool of the MCP server ${oneLine(server)}:`,
    quoted(tool),
    labelled('with', toolParams),
    says,
  );
  return buildApproval(
    prompt,
    withoutNull({ kind: 'mcp_tool_call', server, tool, message: params.message, params: toolParams }),
  );
}

function askForInput(params: JsonObject): Question | null {
  const questions = readInputQuestions(params);
  const [first] = questions;
  if (!first) return null;
  if (questions.length === 1) return parseQuestion(first, 'native');
  return parseQuestion(
    {
      kind: 'fill_fields',
      prompt: questions.map(({ prompt }, index) => `${index + 1}. ${prompt}`).join('\n'),
      fields: questions,
    },
    'native',
  );
}

export interface InputQuestion extends JsonObject {
  readonly id: string;
  readonly prompt: string;
  readonly options: Json[];
}

// Returns none at all if one of them could not be answered by its id.
export function readInputQuestions({ questions }: JsonObject): InputQuestion[] {
  if (!Array.isArray(questions)) return [];
  const read: InputQuestion[] = [];
  for (const entry of questions) {
    const body = asObject(entry);
    const id = asString(body?.id);
    // A secret would stay in the journal forever.
    if (id === undefined || body?.isSecret === true || read.some((other) => other.id === id)) return [];
    read.push({
      id,
      prompt: asString(body?.question) || asString(body?.header) || id,
      options: Array.isArray(body?.options) ? body.options : [],
    });
  }
  return read;
}

// JSON has null for missing values.
function withoutNull(members: Readonly<Record<string, Json | undefined>>): JsonObject {
  return Object.fromEntries(
    Object.entries(members).filter((member): member is [string, Json] => member[1] !== undefined && member[1] !== null),
  );
}

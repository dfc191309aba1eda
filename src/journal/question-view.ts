// Questions, the actions of approvals, and answers, as programs get them over HTTP. Each union is discriminated by one
// member, so that a switch over it narrows the rest.
import type { Json, JsonObject } from '../kernel/json.js';
import type { Actor } from '../store/store.js';

/** An answer that the agent offers. */
export interface QuestionOption {
  /** The text to show. */
  readonly label: string;
  /** The response to send if this option is chosen. */
  readonly value: Json;
  /** A longer explanation of the option. */
  readonly description?: string;
}

/** An option of an approval. */
export interface ApprovalOption extends QuestionOption {
  /** The complete response, for instance `{ decision: 'approve' }`. */
  readonly value: { readonly decision: ApprovalDecision };
}

/** One of several questions that are answered together. */
export interface QuestionField {
  /** The name of the member of the response that answers this field. */
  readonly id: string;
  /** What kind of answer the field expects. */
  readonly kind: Question['kind'];
  /** The text of this part of the question. */
  readonly prompt: string;
  /** The offered answers; empty if any text is possible. */
  readonly options: readonly QuestionOption[];
  /** The value that the agent suggests. */
  readonly default?: Json;
}

interface QuestionBase {
  /** The question. For an approval it shows the exact action, with every line of the engine's text marked. */
  readonly prompt: string;
  /** The offered answers; empty if any text is possible. A text of your own is always allowed, except for approvals. */
  readonly options: readonly QuestionOption[];
  /** The answer that the agent suggests. */
  readonly default?: Json;
  /** How the agent asked. `conversation`: it asked nothing, its turn ended, and it waits for what you say next. */
  readonly channel?: 'native' | 'tool' | 'envelope' | 'conversation';
  /** A JSON Schema that the response must match; other responses are refused. */
  readonly response_schema?: JsonObject;
}

/** A question that expects a text. */
export interface OpenTextQuestion extends QuestionBase {
  /** The discriminant. */
  readonly kind: 'open_text';
}

/** A question with options, of which one is chosen. */
export interface ChooseOneQuestion extends QuestionBase {
  /** The discriminant. */
  readonly kind: 'choose_one';
}

/** A yes-or-no question. */
export interface ConfirmQuestion extends QuestionBase {
  /** The discriminant. */
  readonly kind: 'confirm';
}

/** Several questions at once: the response is an object with a member for each field. */
export interface FillFieldsQuestion extends QuestionBase {
  /** The discriminant. */
  readonly kind: 'fill_fields';
  /** The parts of the question. */
  readonly fields?: readonly QuestionField[];
}

/** A request for permission. The decision is bound to exactly this action. */
export interface ApprovalQuestion extends QuestionBase {
  /** The discriminant. */
  readonly kind: 'approval';
  /** The four decisions. */
  readonly options: readonly ApprovalOption[];
  /** Exactly what the agent wants to do. Absent if the engine describes it only in the prompt. */
  readonly action?: ApprovalAction;
  /** The digest of the action, its folder and the permission of the run, to which the decision is bound. */
  readonly digest?: string;
}

/** A question to a person, discriminated by `kind`. */
export type Question = OpenTextQuestion | ChooseOneQuestion | ConfirmQuestion | FillFieldsQuestion | ApprovalQuestion;

/** The agent wants to run a command. */
export interface CommandAction {
  /** The discriminant. */
  readonly kind: 'command';
  /** The exact command line; absent if only network access is requested. */
  readonly command?: string;
  /** The folder in which the command runs. */
  readonly cwd?: string;
  /** The environment in which the command runs. */
  readonly environment_id?: string;
  /** Permissions that the command gets in addition to those of the run. */
  readonly additional_permissions?: JsonObject;
  /** The network access that the command needs. */
  readonly network?: JsonObject;
}

/** One changed file of a `file_change` action. */
export interface FileChange {
  /** The path of the file. */
  readonly path: string;
  /** What happens to the file, for instance `add`, `update` or `delete`. */
  readonly kind: string;
  /** The new path of a file that is moved. */
  readonly move_to?: string;
  /** The change as a diff. */
  readonly diff: string;
}

/** The agent wants to change files. */
export interface FileChangeAction {
  /** The discriminant. */
  readonly kind: 'file_change';
  /** The changes; absent if the engine did not show them (`diff_seen` is then false). */
  readonly changes?: readonly FileChange[];
  /** The engine's id of a change that it did not show. */
  readonly item_id?: string;
  /** False: the engine did not show the change, so nobody can review it. */
  readonly diff_seen?: false;
  /** A folder in which the agent may write from now on. */
  readonly grant_root?: string;
}

/** The agent wants more permissions. */
export interface PermissionsAction {
  /** The discriminant. */
  readonly kind: 'permissions';
  /** The requested permissions, as the engine describes them. */
  readonly permissions: JsonObject;
  /** The folder to which the permissions apply. */
  readonly cwd?: string;
  /** The environment to which the permissions apply. */
  readonly environment_id?: string;
}

/** The agent wants to call a tool of an MCP server. */
export interface McpToolCallAction {
  /** The discriminant. */
  readonly kind: 'mcp_tool_call';
  /** The name of the MCP server. */
  readonly server: string;
  /** The name of the tool. */
  readonly tool?: string;
  /** The server's own description of the call. Do not trust it. */
  readonly message?: string;
  /** The arguments of the call. */
  readonly params?: Json;
}

/** An MCP server wants a person to open a page. */
export interface OpenUrlAction {
  /** The discriminant. */
  readonly kind: 'open_url';
  /** The name of the MCP server. */
  readonly server: string;
  /** The address of the page. */
  readonly url: string;
}

/**
 * What an approval is about, discriminated by `kind`. Engines may add kinds: keep a default branch that shows the
 * action as JSON.
 */
export type ApprovalAction = CommandAction | FileChangeAction | PermissionsAction | McpToolCallAction | OpenUrlAction;

/**
 * A decision about an approval. `approve_for_session` also allows the same action later in this session; `cancel`
 * declines and stops the turn.
 */
export type ApprovalDecision = 'approve' | 'approve_for_session' | 'decline' | 'cancel';

/** The response to an approval. */
export interface ApprovalResponse {
  /** The decision. */
  readonly decision: ApprovalDecision;
  /** A remark for the agent and the journal. */
  readonly note?: string;
}

/** Declines a form instead of filling it in; `cancel` also stops the turn. */
export interface FormRefusal {
  /** The decision. */
  readonly decision: 'decline' | 'cancel';
}

/** The response to a `fill_fields` question: a member for each field. A form may instead be declined. */
export type FieldsResponse = Readonly<Record<string, Json>> | FormRefusal;

/** The type of the response for each kind of question. */
export interface ResponseByKind {
  /** A text. */
  readonly open_text: Json;
  /** The `value` of an option, or a text of your own. */
  readonly choose_one: Json;
  /** The `value` of an option, a boolean, or a text of your own. */
  readonly confirm: Json;
  /** An object with a member for each field. */
  readonly fill_fields: FieldsResponse;
  /** A decision. */
  readonly approval: ApprovalResponse;
}

/** The type of the response to a question. */
export type ResponseTo<Q extends Question> = ResponseByKind[Q['kind']];

interface AnswerBase {
  /** When the answer was accepted (ISO 8601). */
  readonly at: string;
  /** Who answered; null: the policy of the run decided after the time limit. */
  readonly actor: Actor | null;
}

/** A response to the question. */
export interface ResponseAnswer extends AnswerBase {
  /** The discriminant. */
  readonly finish: false;
  /** The response. Of an approval it is an `ApprovalResponse`. */
  readonly response: Json;
}

/** The end of a conversation in which the agent asked nothing. */
export interface FinishAnswer extends AnswerBase {
  /** The discriminant. */
  readonly finish: true;
  /** Usually null. */
  readonly response: Json;
}

/** The answer to a question, discriminated by `finish`. */
export type Answer = ResponseAnswer | FinishAnswer;

// What a conversation is shown as: rows in their order. A row is changed in place while more of it comes, and its rev
// grows then.
import type { FcmpData } from '../../../src/fcmp/event.js';
import type { EngineDetail } from '../../../src/fcmp/engine-details.js';
import type { Json, JsonObject } from '../../../src/kernel/json.js';

type Tool = FcmpData['assistant.tool.completed'];

interface Base {
  readonly key: string;
  readonly attempt: number;
  // ISO, of its first event.
  readonly at: string;
  rev: number;
  // The RASP events that it came from.
  readonly rasp: number[];
}

export interface UserRow extends Base {
  readonly type: 'user';
  readonly text: string;
}

export interface MessageRow extends Base {
  readonly type: 'message';
  text: string;
  // cut: the turn ended in the middle of it.
  state: 'growing' | 'whole' | 'cut';
  isTruncated: boolean;
}

export interface ReasoningRow extends Base {
  readonly type: 'reasoning';
  text: string;
}

export interface PlanRow extends Base {
  readonly type: 'plan';
  items: FcmpData['assistant.plan']['items'];
  // A later one has taken its place.
  isOld: boolean;
}

export interface ToolRow extends Base {
  readonly type: 'tool';
  readonly name: string;
  readonly kind: Tool['kind'];
  readonly input: Json;
  status: 'running' | 'unfinished' | Tool['status'];
  output: Json | undefined;
  error: string | undefined;
  exitCode: number | null | undefined;
  durationMs: number | undefined;
}

export interface FilesRow extends Base {
  readonly type: 'files';
  readonly files: FcmpData['artifact.file.changed'][];
}

export interface UsageRow extends Base {
  readonly type: 'usage';
  usage: FcmpData['usage'];
}

export interface QuestionRow extends Base {
  readonly type: 'question';
  readonly interactionId: string;
  // As the inbox has it.
  readonly question: JsonObject;
  resolution:
    | { readonly type: 'pending' }
    | {
        readonly type: 'answered';
        readonly at: string;
        readonly by: string;
        readonly response: Json | undefined;
        readonly finish: boolean;
        readonly review: 'seen' | 'unread' | undefined;
      }
    | { readonly type: 'decided'; readonly at: string; readonly policy: string; readonly response: Json | undefined }
    | { readonly type: 'gone' };
}

export interface AttemptRow extends Base {
  readonly type: 'attempt';
  readonly number: number;
  readonly waitedMs: number;
}

// What the engine printed beside the conversation in one turn, and the done marker.
export interface DetailsRow extends Base {
  readonly type: 'details';
  readonly details: EngineDetail[];
  readonly counts: Partial<Record<EngineDetail['kind'], number>>;
}

export interface EndRow extends Base {
  readonly type: 'end';
  readonly end:
    | { readonly state: 'succeeded'; readonly result: Json | undefined }
    | { readonly state: 'failed'; readonly error: FcmpData['conversation.failed']['error'] }
    | { readonly state: 'canceled'; readonly by: string | undefined };
}

// Of a later version.
export interface UnknownRow extends Base {
  readonly type: 'unknown';
  readonly name: string;
  readonly data: JsonObject;
}

export type Row =
  | UserRow
  | MessageRow
  | ReasoningRow
  | PlanRow
  | ToolRow
  | FilesRow
  | UsageRow
  | QuestionRow
  | AttemptRow
  | DetailsRow
  | EndRow
  | UnknownRow;

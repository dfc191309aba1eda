// The rows of a conversation, in order. A row that receives more content is changed in place, and its `rev` increases.
import type { FcmpData } from '../../../src/fcmp/event.js';
import type { EngineDetail } from '../../../src/fcmp/engine-details.js';
import type { Json, JsonObject } from '../../../src/kernel/json.js';

type Tool = FcmpData['assistant.tool.completed'];

interface Base {
  readonly key: string;
  readonly attempt: number;
  // The ISO time of its first event.
  readonly at: string;
  rev: number;
  // The RASP events behind this row.
  readonly rasp: number[];
}

interface UserRow extends Base {
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

interface ReasoningRow extends Base {
  readonly type: 'reasoning';
  text: string;
}

export interface PlanRow extends Base {
  readonly type: 'plan';
  items: FcmpData['assistant.plan']['items'];
  // Whether a later plan replaced this one.
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

interface FilesRow extends Base {
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
  // In the form of the inbox.
  readonly question: JsonObject;
  resolution:
    | { readonly type: 'pending' }
    | {
        readonly type: 'answered';
        readonly at: string;
        readonly by: string | null;
        readonly response: Json | undefined;
        readonly finish: boolean;
        readonly review: 'seen' | 'unread' | undefined;
      }
    | { readonly type: 'decided'; readonly at: string; readonly policy: string; readonly response: Json | undefined }
    | { readonly type: 'gone' };
}

interface AttemptRow extends Base {
  readonly type: 'attempt';
  readonly number: number;
  readonly waitedMs: number;
}

// Engine output of one turn that is not part of the conversation, and the done marker.
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

// An event of a later version.
interface UnknownRow extends Base {
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

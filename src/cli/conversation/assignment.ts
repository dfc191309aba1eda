// The messages between a command and the worker process that it starts. Kept apart from the worker, so that a command
// does not load the code that executes runs.
import type { Values } from '../../kernel/fill-template.js';
import type { CreateRunRequest } from '../../commands/create-request.js';
import type { Reply } from '../../commands/reply.js';
import type { Json, JsonObject } from '../../kernel/json.js';

export type Job =
  | { readonly type: 'create'; readonly request: CreateRunRequest }
  | { readonly type: 'continue'; readonly run_id: string; readonly prompt: string; readonly force?: boolean }
  | { readonly type: 'fork'; readonly run_id: string; readonly prompt: string; readonly force?: boolean }
  | { readonly type: 'retry'; readonly run_id: string; readonly force?: boolean }
  | { readonly type: 'reply'; readonly run_id: string; readonly reply: Reply }
  // Runs only due work: recovery, and questions that timed out.
  | { readonly type: 'run_due'; readonly run_id: string };

export interface Assignment {
  readonly data: string;
  readonly job: Job;
  // The worker runs as long as the command that started it, even if there is no work.
  readonly stay?: boolean;
}

export type Answer = { readonly run_id: string } | { readonly error: Failure };

interface Failure {
  readonly code: string;
  readonly message: string;
  readonly values?: Values | undefined;
  readonly hint?: string | undefined;
}

export function isAnswer(message: Json): message is JsonObject & Answer {
  return typeof message === 'object' && message !== null && ('run_id' in message || 'error' in message);
}

// What this library refuses, or could not do. What the server itself refuses is a JsonRpcError.

export type AppServerErrorCode =
  | 'codex_not_found'
  | 'not_started'
  | 'bad_options'
  // Another instance has this home, or this instance runs already.
  | 'in_use'
  | 'closed'
  // It was asked by an earlier process.
  | 'old_request'
  | 'turn_active'
  | 'turn_not_ended'
  | 'too_few_turns'
  | 'unexpected_answer';

export class AppServerError extends Error {
  override readonly name = 'AppServerError';
  readonly code: AppServerErrorCode;

  constructor(code: AppServerErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

// Errors of this library. An error response of the server is a JsonRpcError.

/**
 * Why a call of this library failed.
 *
 * - `codex_not_found`: there is no Codex program.
 * - `not_started`: the server did not start.
 * - `bad_options`: an option or a parameter is invalid.
 * - `in_use`: another instance uses this home, or this instance is already running.
 * - `closed`: the server has exited or is being closed.
 * - `old_request`: an earlier process sent the request.
 * - `turn_active`: the thread has an active turn, or its history is being changed.
 * - `no_turn`: the thread has no active turn.
 * - `turn_not_ended`: the turn did not end in time.
 * - `too_few_turns`: the thread has fewer turns than should be rolled back.
 * - `unexpected_answer`: the response of the server lacks a required member.
 */
export type AppServerErrorCode =
  | 'codex_not_found'
  | 'not_started'
  | 'bad_options'
  | 'in_use'
  | 'closed'
  | 'old_request'
  | 'turn_active'
  | 'no_turn'
  | 'turn_not_ended'
  | 'too_few_turns'
  | 'unexpected_answer';

/** A call of this library failed. An error response of the server is a `JsonRpcError` instead. */
export class AppServerError extends Error {
  /** The name of this class. */
  override readonly name = 'AppServerError';
  /** Why the call failed. */
  readonly code: AppServerErrorCode;

  /** Creates the error. */
  constructor(code: AppServerErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

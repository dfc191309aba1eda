// Why a private home cannot be used.

export type HomeErrorCode =
  // Another instance or the user owns the folder.
  | 'in_use'
  // A settings file cannot be parsed.
  | 'bad_options';

export class HomeError extends Error {
  override readonly name = 'HomeError';
  readonly code: HomeErrorCode;

  constructor(code: HomeErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}

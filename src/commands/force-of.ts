// The wish to create a run of an engine that is known to be missing or logged out, handed on where it was stated.
export interface Forced {
  readonly force?: boolean;
}

export function forceOf(given: { readonly force?: boolean | undefined } | null | undefined): Forced {
  return given?.force === undefined ? {} : { force: given.force };
}

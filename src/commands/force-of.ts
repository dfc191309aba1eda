// The option to create a run although its engine is known to be missing or logged out, copied only if the caller set
// it.
export interface Forced {
  readonly force?: boolean;
}

export function forceOf(input: { readonly force?: boolean | undefined } | null | undefined): Forced {
  return input?.force === undefined ? {} : { force: input.force };
}

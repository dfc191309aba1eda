// The types of soak-server.mjs, for the test that plays its short form.
export interface Sample {
  readonly seconds: number;
  readonly done: number;
  readonly rss: number;
  readonly heap: number | null;
  readonly fds: number;
  readonly threads: number;
  readonly wal: number;
  readonly database: number;
}
export interface Quarters {
  readonly first: number;
  readonly second: number;
  readonly last: number;
  readonly slope: number;
}
export interface Summary {
  readonly runs: number;
  readonly clients: number;
  readonly seconds: number;
  readonly events: number;
  readonly lost: number;
  readonly duplicate: number;
  readonly reconnects: number;
  readonly asked: number;
  readonly untold: number;
  readonly fdsBefore: number;
  readonly fdsAfter: number;
  readonly rss: Quarters;
  readonly heap: Quarters | null;
  readonly fds: Quarters;
  readonly verdict: string;
}
export default function soak(
  options?: { readonly runs?: number; readonly clients?: number; readonly quiet?: boolean } | readonly string[],
): Promise<{ readonly samples: readonly Sample[]; readonly summary: Summary }>;

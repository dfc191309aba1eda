// Where a host keeps the files of runs.
export interface Site {
  // Names the disk; null: all hosts see the same files.
  readonly site: string | null;
  // The data directory, which stands in the paths of runs; null: of a store that plays nothing.
  readonly place: string | null;
}

export const NOWHERE: Site = { site: null, place: null };

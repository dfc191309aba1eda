// Describes an engine on this machine, without starting it.

/** An engine on the machine of the server. */
export interface EngineReport {
  /** The name of the engine, for instance `codex`. */
  readonly name: string;
  /** Whether its program is installed. */
  readonly found: boolean;
  /** The path of its program. */
  readonly program: string | null;
  /** The installed version. */
  readonly version: string | null;
  /** The version that Parley is tested with. */
  readonly proved_version: string;
  /** Whether it is logged in; null: it needs no login. */
  readonly login: boolean | null;
  /** Whether a run can start with a copy of another run's conversation. */
  readonly forks: boolean;
  /** What to do before it can be used; null: nothing. */
  readonly advice: string | null;
}

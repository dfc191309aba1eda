// What can be said of an engine on this machine without starting it.
export interface EngineReport {
  readonly name: string;
  readonly found: boolean;
  readonly program: string | null;
  readonly version: string | null;
  readonly proved_version: string;
  // Null: it needs none.
  readonly login: boolean | null;
  // A run of it can begin with a copy of another's conversation.
  readonly forks: boolean;
  readonly advice: string | null;
}

// Builds the environment of an engine's process from an allow list. All other variables of the user are withheld.
import { join } from 'node:path';
import type { Engine, User } from '../../engines/engine.js';

// The variables that any program needs: language, paths, network, terminal, certificates, git.
const COMMON = [
  /^(?:PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|TZ|TERM|COLORTERM|TMPDIR|TEMP|TMP|EDITOR|NO_COLOR)$/,
  /^LC_\w+$/,
  /^(?:HTTP|HTTPS|ALL|NO)_PROXY$/i,
  /^(?:SSL_CERT_FILE|SSL_CERT_DIR|NODE_EXTRA_CA_CERTS|REQUESTS_CA_BUNDLE)$/,
  /^GIT_(?:AUTHOR|COMMITTER)_(?:NAME|EMAIL)$/,
  /^(?:SSH_AUTH_SOCK|SystemRoot|COMSPEC|PATHEXT|APPDATA|LOCALAPPDATA|USERPROFILE)$/,
];

export interface EnvironmentOptions {
  readonly user: User;
  // The private home; null: the engine uses the user's own folders.
  readonly home: string | null;
  // Names of further variables that the operator allows.
  readonly passthrough: readonly string[];
}

export function buildEnvironment(
  engine: Pick<Engine, 'home'>,
  { user, home, passthrough }: EnvironmentOptions,
): Record<string, string> {
  const allowed = [...COMMON, ...engine.home.passes];
  const named = new Set(passthrough);
  const passed = Object.entries(user.env).filter(
    (entry): entry is [string, string] =>
      entry[1] !== undefined && (named.has(entry[0]) || allowed.some((pattern) => pattern.test(entry[0]))),
  );
  // Engines leave error reports with requests in the folder for temporary files. A folder inside the home is deleted
  // together with the home.
  return {
    ...Object.fromEntries(passed),
    ...(home === null
      ? {}
      : { TMPDIR: temporaryFolder(home), ...engine.home.environment(home), ...loginFolder(engine, user) }),
  };
}

function loginFolder({ home: { loginFolder: rule } }: Pick<Engine, 'home'>, user: User): Record<string, string> {
  return rule ? { [rule.variable]: rule.of(user) } : {};
}

export function temporaryFolder(home: string): string {
  return join(home, 'tmp');
}

// The environment of an engine's process: little by little, by name. Everything else of the user stays with the user.
import { join } from 'node:path';
import type { Engine, User } from './engine.js';

// What any program needs to work as the user's own: language, paths, network, terminal, certificates, git.
const COMMON = [
  /^(?:PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|TZ|TERM|COLORTERM|TMPDIR|TEMP|TMP|EDITOR|NO_COLOR)$/,
  /^LC_\w+$/,
  /^(?:HTTP|HTTPS|ALL|NO)_PROXY$/i,
  /^(?:SSL_CERT_FILE|SSL_CERT_DIR|NODE_EXTRA_CA_CERTS|REQUESTS_CA_BUNDLE)$/,
  /^GIT_(?:AUTHOR|COMMITTER)_(?:NAME|EMAIL)$/,
  /^(?:SSH_AUTH_SOCK|SystemRoot|COMSPEC|PATHEXT|APPDATA|LOCALAPPDATA|USERPROFILE)$/,
];

export function buildEnvironment(
  engine: Pick<Engine, 'home'>,
  user: User,
  home: string | null,
  passthrough: readonly string[],
): Record<string, string> {
  const allowed = [...COMMON, ...engine.home.passes];
  const named = new Set(passthrough);
  const passed = Object.entries(user.env).filter(
    (entry): entry is [string, string] =>
      entry[1] !== undefined && (named.has(entry[0]) || allowed.some((pattern) => pattern.test(entry[0]))),
  );
  // What engines leave in the folder for temporary files (error reports with the request, libraries) goes with the
  // home.
  return {
    ...Object.fromEntries(passed),
    ...(home === null ? {} : { TMPDIR: temporaryFolder(home), ...engine.home.environment(home) }),
  };
}

export function temporaryFolder(home: string): string {
  return join(home, 'tmp');
}

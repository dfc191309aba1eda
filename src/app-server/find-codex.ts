// Finds Codex: the program somebody named, or the one on PATH; in both cases the program itself and not npm's wrapper
// around it.
import { codexProbe } from '../engines/codex/probe.js';
import { nativeOf } from '../engines/native-program.js';
import { findNamed, findOnPath } from '../process/find-program.js';
import { AppServerError } from './app-server-error.js';

export function findCodex(named: string | undefined, path: string, platform: string): string {
  const found = named === undefined ? findOnPath(codexProbe.binary, path) : findNamed(named, path);
  const program = nativeOf(found, codexProbe, platform);
  if (program !== null) return program;
  throw new AppServerError(
    'codex_not_found',
    named === undefined
      ? `codex not found on PATH (${codexProbe.install})`
      : `codex not found: ${named} is not a program`,
  );
}

// Finds the Codex program, or explains why there is none.
import { codexProbe } from '../engines/codex/probe.js';
import { locateProgram, type WhereToLook } from '../machine/programs/locate-program.js';
import { AppServerError } from './app-server-error.js';

export function findCodex(where: WhereToLook): string {
  const program = locateProgram(codexProbe, where);
  if (program !== null) return program;
  throw new AppServerError(
    'codex_not_found',
    where.named === undefined
      ? `codex not found on PATH (${codexProbe.install})`
      : `codex not found: ${where.named} is not a program`,
  );
}

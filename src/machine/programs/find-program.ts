// Finds the program of an engine: named by an environment variable, by config.json, or on PATH.
import { join } from 'node:path';
import type { Engine } from '../../engines/engine.js';
import type { Settings } from '../../settings/settings.js';
import type { Machine } from '../machine.js';
import { locateProgram } from './locate-program.js';

export interface FoundProgram {
  readonly program: readonly string[] | null;
  // Which setting named the program, for people.
  readonly by: string;
}

export function findProgram(
  { name, probe }: Engine,
  { user, node, programs, platform }: Pick<Machine, 'user' | 'node' | 'programs' | 'platform'>,
  settings: Pick<Settings, 'engines'>,
): FoundProgram {
  if (probe.bundled !== undefined) return { program: [node, join(programs, probe.bundled)], by: 'bundled' };
  const path = user.env['PATH'] ?? '';
  const locate = (named: string | undefined, by: string): FoundProgram => {
    const program = locateProgram(probe, { named, path, platform });
    return { program: program === null ? null : [program], by };
  };
  for (const engine of [name, ...(probe.programOf === undefined ? [] : [probe.programOf])]) {
    const variable = `PARLEY_${engine.toUpperCase().replaceAll('-', '_')}_BIN`;
    const named = user.env[variable];
    if (named !== undefined && named !== '') return locate(named, `${variable}=${named}`);
    const configured = settings.engines[engine]?.bin;
    if (configured !== undefined) return locate(configured, `config.json: ${configured}`);
  }
  return locate(undefined, 'PATH');
}

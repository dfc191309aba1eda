// The machine that engines are reached on, and where their programs are: named by the environment, by the settings, or
// on PATH.
import { join } from 'node:path';
import { nativeOf } from '../engines/native-program.js';
import type { Engine, User } from '../engines/engine.js';
import { findNamed, findOnPath } from '../process/find-program.js';
import type { Settings } from './settings.js';

export interface Machine {
  readonly user: User;
  // The Node that runs us, and the folder of the built program: engines that come with Parley are scripts there.
  readonly node: string;
  readonly programs: string;
  // For instance linux-x64.
  readonly platform: string;
  readonly pid: number;
  readonly askTool: readonly string[];
}

export interface FoundProgram {
  readonly program: readonly string[] | null;
  // Who named it, for people.
  readonly by: string;
}

export function findProgram(
  { name, probe }: Engine,
  { user, node, programs, platform }: Machine,
  settings: Settings,
): FoundProgram {
  if (probe.bundled !== undefined) return { program: [node, join(programs, probe.bundled)], by: 'bundled' };
  const path = user.env['PATH'] ?? '';
  for (const asked of [name, ...(probe.programOf === undefined ? [] : [probe.programOf])]) {
    const variable = `PARLEY_${asked.toUpperCase().replaceAll('-', '_')}_BIN`;
    const named = user.env[variable];
    if (named !== undefined && named !== '')
      return asProgram(nativeOf(findNamed(named, path), probe, platform), `${variable}=${named}`);
    const configured = settings.engines[asked]?.bin;
    if (configured !== undefined)
      return asProgram(nativeOf(findNamed(configured, path), probe, platform), `config.json: ${configured}`);
  }
  return asProgram(nativeOf(findOnPath(probe.binary, path), probe, platform), 'PATH');
}

function asProgram(found: string | null, by: string): FoundProgram {
  return { program: found === null ? null : [found], by };
}

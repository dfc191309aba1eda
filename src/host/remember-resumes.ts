// Whether an engine can continue a conversation in another process, by its own help. Asked once of each program as it is now: an
// answer that did not come is asked for again.
import { statSync } from 'node:fs';
import type { Engine } from '../engines/engine.js';
import { probeEngine } from '../engines/probe.js';
import type { Timers } from '../process/timers.js';
import { findProgram, type Machine } from './machine.js';
import { queryProgram } from './query-program.js';
import type { Settings } from './settings.js';

const LIMIT_MS = 10_000;

export function rememberResumes(machine: Machine, settings: Settings, timers: Timers): (engine: Engine) => Promise<boolean | null> {
  const known = new Map<string, boolean>();
  return async (engine) => {
    const { program } = findProgram(engine, machine, settings);
    const bin = program?.at(-1);
    if (program === null || bin === undefined) return null;
    const key = `${engine.name} ${bin} ${statSync(bin, { throwIfNoEntry: false })?.mtimeMs ?? 0}`;
    const before = known.get(key);
    if (before !== undefined) return before;
    const { resumes } = await probeEngine(engine, {
      find: async () => bin,
      run: (_bin, args) => queryProgram({ engine, program, args, user: machine.user, passthrough: settings.env_passthrough, limitMs: LIMIT_MS, timers, signal: new AbortController().signal }),
    });
    if (resumes !== null) known.set(key, resumes);
    return resumes;
  };
}

// Engines as they are reached on this machine: programs from the environment, the settings or PATH, one private home a run.
import { randomUUID } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Engine, User } from '../engines/engine.js';
import type { EngineHost } from '../orchestrator/deps.js';
import { buildEnvironment } from './environment.js';
import { findNamed, findOnPath } from './find-program.js';
import { hasSession } from './find-session.js';
import { prepareHome } from './prepare-home.js';
import type { Settings } from './settings.js';

export interface Machine {
  readonly user: User;
  // The Node that runs us, and the folder of the built program: engines that come with Parley are scripts there.
  readonly node: string;
  readonly programs: string;
}

export function createEngineHost(machine: Machine, settings: Settings): EngineHost {
  const { user } = machine;
  return {
    findProgram: async (engine) => findProgram(engine, machine, settings).program,
    environment: (engine, { spec }) => {
      if (spec.home !== null) {
        mkdirSync(spec.home, { recursive: true, mode: 0o700 });
        prepareHome(engine, user, spec.home);
      }
      return buildEnvironment(engine, user, spec.home, settings.env_passthrough);
    },
    hasSession: async (handle) => hasSession(handle),
    newSessionId: () => randomUUID(),
  };
}

export interface FoundProgram {
  readonly program: readonly string[] | null;
  // Who named it, for people.
  readonly by: string;
}

export function findProgram({ name, probe }: Engine, { user, node, programs }: Machine, settings: Settings): FoundProgram {
  if (probe.bundled !== undefined) return { program: [node, join(programs, probe.bundled)], by: 'bundled' };
  const path = user.env['PATH'] ?? '';
  const variable = `PARLEY_${name.toUpperCase()}_BIN`;
  const named = user.env[variable];
  if (named !== undefined && named !== '') return asProgram(findNamed(named, path), `${variable}=${named}`);
  const configured = settings.engines[name]?.bin;
  if (configured !== undefined) return asProgram(findNamed(configured, path), `config.json: ${configured}`);
  return asProgram(findOnPath(probe.binary, path), 'PATH');
}

function asProgram(found: string | null, by: string): FoundProgram {
  return { program: found === null ? null : [found], by };
}

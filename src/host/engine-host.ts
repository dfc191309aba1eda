// Engines as they are reached on this machine: programs from the environment, the settings or PATH, one private home a run.
import { randomUUID } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import type { Engine, User } from '../engines/engine.js';
import type { EngineHost } from '../orchestrator/deps.js';
import { buildEnvironment } from './environment.js';
import { findNamed, findOnPath } from './find-program.js';
import { hasSession } from './find-session.js';
import { prepareHome } from './prepare-home.js';
import type { Settings } from './settings.js';

export interface Machine {
  readonly user: User;
  // Runs a script of this package: the Node that runs us, and where the script is.
  readonly rehearsal: readonly string[];
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

export function findProgram(engine: Engine, { user, rehearsal }: Machine, settings: Settings): FoundProgram {
  if (engine.name === 'rehearsal') return { program: rehearsal, by: 'bundled' };
  const path = user.env['PATH'] ?? '';
  const variable = `PARLEY_${engine.name.toUpperCase()}_BIN`;
  const one = (found: string | null, by: string): FoundProgram => ({ program: found === null ? null : [found], by });
  const named = user.env[variable];
  if (named !== undefined && named !== '') return one(findNamed(named, path), `${variable}=${named}`);
  const configured = settings.engines[engine.name]?.bin;
  if (configured !== undefined) return one(findNamed(configured, path), `config.json: ${configured}`);
  return one(findOnPath(engine.probe.binary, path), 'PATH');
}

// Engines as they are reached on this machine: programs from the environment, the settings or PATH, one private home a run.
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { Engine, User } from '../engines/engine.js';
import type { Clock } from '../kernel/clock.js';
import type { EngineHost } from '../orchestrator/deps.js';
import type { Timers } from '../process/timers.js';
import { projectOf } from '../engines/folders-above.js';
import { checkWorkspace } from './check-workspace.js';
import { nativeOf } from '../engines/native-program.js';
import { buildEnvironment } from '../engines/environment.js';
import { keyInstead } from '../engines/find-login.js';
import { findNamed, findOnPath } from '../process/find-program.js';
import { hasSession } from './find-session.js';
import { LoginRenewals } from './login-renewals.js';
import { packageVersion } from './package-version.js';
import { prepareHome } from './prepare-home.js';
import type { Settings } from './settings.js';

export interface Machine {
  readonly user: User;
  // The Node that runs us, and the folder of the built program: engines that come with Parley are scripts there.
  readonly node: string;
  readonly programs: string;
  // For instance linux-x64.
  readonly platform: string;
  readonly askTool: readonly string[];
}

export function createEngineHost(machine: Machine, settings: Settings, { clock, timers }: { readonly clock: Clock; readonly timers: Timers }): EngineHost {
  const { user } = machine;
  const renewals = new LoginRenewals(clock, timers);
  return {
    findProgram: async (engine) => findProgram(engine, machine, settings).program,
    explainMissing: (engine) => {
      const { program, by } = findProgram(engine, machine, settings);
      return program === null && by !== 'PATH' ? `${engine.probe.binary} not found: ${by} is not a program` : undefined;
    },
    versionOf: packageVersion,
    admit: (engine) => renewals.admit(engine, user),
    environment: (engine, { spec }, turn) => {
      if (spec.permission !== 'full') checkWorkspace(engine, user, spec.cwd);
      if (spec.home !== null) prepareHome(engine, user, spec.home, { ...turn, permission: spec.permission, cwd: spec.cwd, project: projectOf(spec.cwd) });
      return { ...buildEnvironment(engine, user, spec.home, settings.env_passthrough), ...keyInstead(engine, user) };
    },
    hasSession: async (handle) => hasSession(handle),
    newSessionId: () => randomUUID(),
    askTool: machine.askTool,
  };
}

export interface FoundProgram {
  readonly program: readonly string[] | null;
  // Who named it, for people.
  readonly by: string;
}

export function findProgram({ name, probe }: Engine, { user, node, programs, platform }: Machine, settings: Settings): FoundProgram {
  if (probe.bundled !== undefined) return { program: [node, join(programs, probe.bundled)], by: 'bundled' };
  const path = user.env['PATH'] ?? '';
  const variable = `PARLEY_${name.toUpperCase()}_BIN`;
  const named = user.env[variable];
  if (named !== undefined && named !== '') return asProgram(nativeOf(findNamed(named, path), probe, platform), `${variable}=${named}`);
  const configured = settings.engines[name]?.bin;
  if (configured !== undefined) return asProgram(nativeOf(findNamed(configured, path), probe, platform), `config.json: ${configured}`);
  return asProgram(nativeOf(findOnPath(probe.binary, path), probe, platform), 'PATH');
}

function asProgram(found: string | null, by: string): FoundProgram {
  return { program: found === null ? null : [found], by };
}

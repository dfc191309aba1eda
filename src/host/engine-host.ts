// Engines as they are reached on this machine, one private home a run.
import { randomUUID } from 'node:crypto';
import { toTimestamp, type Clock } from '../kernel/clock.js';
import type { EngineHost } from '../journal/deps.js';
import type { Timers } from '../process/timers.js';
import { projectOf } from '../engines/folders-above.js';
import { checkWorkspace } from './check-workspace.js';
import { buildEnvironment } from '../engines/environment.js';
import { keyInstead } from '../engines/find-login.js';
import { copySession } from './copy-session.js';
import { EngineKnowledge } from './engine-knowledge.js';
import { hasSession } from './find-session.js';
import { KnowledgeFile } from './knowledge-file.js';
import { LoginRefusals } from './login-refusals.js';
import { LoginRenewals } from './login-renewals.js';
import { findProgram, type Machine } from './machine.js';
import { packageVersion } from './package-version.js';
import { prepareHome } from './prepare-home.js';
import type { Settings } from './settings.js';
import { startResident } from './start-resident.js';

export interface HostDeps {
  readonly clock: Clock;
  readonly timers: Timers;
  // Shared with others who want to know about the engines; otherwise the host keeps its own, in memory.
  readonly knowledge?: EngineKnowledge;
  // Where refused logins are kept; in memory if nothing is said.
  readonly file?: KnowledgeFile;
}

export function createEngineHost(
  machine: Machine,
  settings: Settings,
  {
    clock,
    timers,
    file = new KnowledgeFile(null),
    knowledge = new EngineKnowledge({ machine, settings, clock, timers, file }),
  }: HostDeps,
): EngineHost {
  const { user } = machine;
  const renewals = new LoginRenewals(clock, timers);
  const logins = new LoginRefusals(user, clock, file);
  return {
    findProgram: async (engine) => findProgram(engine, machine, settings).program,
    explainMissing: (engine) => {
      const { program, by } = findProgram(engine, machine, settings);
      return program === null && by !== 'PATH' ? `${engine.probe.binary} not found: ${by} is not a program` : undefined;
    },
    versionOf: packageVersion,
    admit: (engine) => renewals.admit(engine, user),
    environment: async (engine, { spec }, turn) => {
      if (spec.permission !== 'full') await checkWorkspace(engine, user, spec.cwd);
      if (spec.home !== null)
        await prepareHome(engine, user, spec.home, {
          ...turn,
          permission: spec.permission,
          cwd: spec.cwd,
          project: projectOf(spec.cwd),
        });
      return { ...buildEnvironment(engine, user, spec.home, settings.env_passthrough), ...keyInstead(engine, user) };
    },
    startResident: (_engine, start) =>
      startResident(start, { user, platform: machine.platform, pid: machine.pid, clock, timers }),
    knownResume: (engine) => knowledge.known(engine),
    probeResume: (engine) => knowledge.learn(engine),
    explainUnusable: (engine, model) => {
      const { program, by } = findProgram(engine, machine, settings);
      const { binary, install } = engine.probe;
      if (program === null)
        return {
          code: 'ENGINE_NOT_INSTALLED',
          message:
            by === 'PATH'
              ? `${binary} was not found on PATH (${install}).`
              : `${binary} was not found: ${by} is not a program.`,
        };
      const at = logins.refusedAt(engine, model);
      return at === null
        ? null
        : {
            code: 'ENGINE_LOGGED_OUT',
            message:
              `${engine.name} refused your login (${toTimestamp(at)}), and nothing has changed since. Log ` +
              `in: ${engine.home.howToLogIn}.`,
          };
    },
    noteLogin: (engine, model, isAccepted) => logins.note(engine, model, isAccepted),
    hasSession,
    copySession,
    newSessionId: () => randomUUID(),
    askTool: machine.askTool,
  };
}

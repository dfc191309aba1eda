// Implements EngineRuntime for this machine, with one private home per run.
import { formOf } from '../messages/forms.js';
import { randomUUID } from 'node:crypto';
import { toTimestamp, type Clock } from '../kernel/clock.js';
import type { Timers } from '../process/timers.js';
import { projectOf } from '../files/folders-above.js';
import { checkWorkspace } from './homes/check-workspace.js';
import { buildEnvironment } from './homes/environment.js';
import { keyInstead } from './logins/find-login.js';
import { copySession } from './sessions/copy-session.js';
import { EngineKnowledge } from './programs/engine-knowledge.js';
import { hasSession } from './sessions/find-session.js';
import { KnowledgeFile } from './knowledge-file.js';
import { LoginRefusals } from './logins/login-refusals.js';
import { LoginRenewals } from './logins/login-renewals.js';
import type { EngineRuntime } from './engine-runtime.js';
import type { Machine } from './machine.js';
import { findProgram } from './programs/find-program.js';
import { packageVersion } from './programs/package-version.js';
import { readInstructions } from './homes/read-instructions.js';
import { prepareHome } from './homes/prepare-home.js';
import { refusal } from '../run/request-error.js';
import { runError } from '../run/run-error.js';
import type { Settings } from '../settings/settings.js';

export interface RuntimeDeps {
  readonly clock: Clock;
  readonly timers: Timers;
  // Facts about programs, shared with other readers; default: facts of its own, in memory.
  readonly knowledge?: EngineKnowledge;
  // Stores refused logins; default: in memory.
  readonly file?: KnowledgeFile;
  // Starts resident engines. Passed in, because the library that runs them uses this folder.
  readonly startResident?: EngineRuntime['startResident'];
}

export function createEngineRuntime(
  machine: Machine,
  settings: Pick<Settings, 'engines' | 'env_passthrough' | 'workspace_instructions'>,
  {
    clock,
    timers,
    file = new KnowledgeFile(null),
    knowledge = new EngineKnowledge({ machine, settings, clock, timers, file }),
    startResident,
  }: RuntimeDeps,
): EngineRuntime {
  const { user } = machine;
  const renewals = new LoginRenewals(clock, timers);
  const logins = new LoginRefusals(user, clock, file);
  return {
    findProgram: async (engine) => findProgram(engine, machine, settings).program,
    explainMissing: (engine) => {
      const { program, by } = findProgram(engine, machine, settings);
      if (program !== null || by === 'PATH') return undefined;
      return runError('ENGINE_NOT_FOUND.configured', { program: engine.probe.binary, place: by });
    },
    versionOf: packageVersion,
    admit: (engine) => renewals.admit(engine, user),
    environment: async (engine, { spec }, turn) => {
      if (spec.permission !== 'full') await checkWorkspace(engine, user, spec.cwd);
      if (spec.home !== null)
        await prepareHome(engine, {
          ...turn,
          user,
          home: spec.home,
          permission: spec.permission,
          cwd: spec.cwd,
          project: projectOf(spec.cwd),
        });
      const passthrough = settings.env_passthrough;
      return { ...buildEnvironment(engine, { user, home: spec.home, passthrough }), ...keyInstead(engine, user) };
    },
    readInstructions: async ({ home: { instructions } }, { spec: { cwd, permission } }) =>
      instructions === undefined || permission === 'full' || !settings.workspace_instructions
        ? null
        : readInstructions(cwd, instructions),
    ...(startResident ? { startResident } : {}),
    knownResume: (engine) => knowledge.known(engine),
    probeResume: (engine) => knowledge.learn(engine),
    explainUnusable: (engine, model) => {
      const { program, by } = findProgram(engine, machine, settings);
      const { binary } = engine.probe;
      const install = formOf(engine.probe.install);
      if (program === null)
        return by === 'PATH'
          ? refusal('ENGINE_NOT_INSTALLED.path', { program: binary, install })
          : refusal('ENGINE_NOT_INSTALLED.configured', { program: binary, place: by });
      const at = logins.refusedAt(engine, model);
      const login = formOf(engine.home.howToLogIn);
      return at === null ? null : refusal('ENGINE_LOGGED_OUT', { engine: engine.name, time: toTimestamp(at), login });
    },
    noteLogin: (engine, model, isAccepted) => logins.note(engine, model, isAccepted),
    hasSession,
    copySession,
    newSessionId: () => randomUUID(),
    askTool: machine.askTool,
  };
}

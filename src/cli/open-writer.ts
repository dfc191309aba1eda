// Opens the data directory for writing, with everything that executes runs. Only one process at a time may do so.
import { constants, existsSync, mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { startResident } from '../app-server/start-resident.js';
import { namedHooks } from '../hooks/load-hooks.js';
import { ENGINES } from '../engines/registry.js';
import { createEngineRuntime } from '../machine/create-engine-runtime.js';
import { EngineKnowledge } from '../machine/programs/engine-knowledge.js';
import { KnowledgeFile } from '../machine/knowledge-file.js';
import { LiveSettings } from '../settings/live-settings.js';
import type { Settings } from '../settings/settings.js';
import type { RunDefaults } from '../journal/deps.js';
import type { Clock } from '../kernel/clock.js';
import { createIds } from '../kernel/ids.js';
import { toFailureCallback, type Log } from '../kernel/log.js';
import { Orchestrator } from '../orchestrator/orchestrator.js';
import { refusal } from '../run/request-error.js';
import type { Membership } from '../ownership/postgres/join-cluster.js';
import type { DataDir } from '../store/sqlite/data-dir.js';
import type { Actor } from '../store/store.js';
import { checkFolder } from './data-dir.js';
import type { Io } from './io.js';
import { machineOf } from './machine-of.js';
import { openToWrite } from './open-data.js';
import { openLogFile } from './open-log.js';
import { explainReason } from '../messages/system-reason.js';

// Creates one folder after the other: a recursive mkdir never returns where nothing can be created, such as in /proc.
function makeFolder(path: string): void {
  const above = dirname(path);
  if (existsSync(path)) return;
  if (above !== path) makeFolder(above);
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    // Another process may have created it at the same time.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST')
      throw refusal('DATA_DIR_UNUSABLE.not_created', { path, reason: explainReason(error) });
  }
}

export interface OpenWriter {
  readonly data: DataDir;
  readonly cluster: Membership | null;
  readonly clock: Clock;
  readonly orchestrator: Orchestrator;
  readonly knowledge: EngineKnowledge;
  // Applies changed settings that are not read anew each time they are used.
  applySettings(): void;
  close(): Promise<void>;
}

export interface OpenOptions {
  // The process is a server: only then may an engine process stay resident while its run waits.
  readonly serves?: boolean;
  readonly runsTurns?: boolean;
  // Settings that may change while the writer is open. Default: those in the file when it opens.
  readonly settings?: LiveSettings;
  // The address that people use, empty while it is unknown. Default: public_url of the settings.
  readonly baseUrl?: () => string;
  // Default: parley.log in the data directory.
  readonly log?: Log;
}

export async function openWriter(path: string, io: Io, options: OpenOptions = {}): Promise<OpenWriter> {
  const { runsTurns = true, serves = false, log = openLogFile(path, io) } = options;
  checkFolder(path, constants.W_OK | constants.X_OK);
  const live = options.settings ?? new LiveSettings(path);
  // In force until this process ends.
  const settings = live.current;
  makeFolder(path);
  const { data, cluster, ports, clock } = await openToWrite(path, io, { settings, serves, log });
  const programs = {
    get engines() {
      return live.current.engines;
    },
    get env_passthrough() {
      return live.current.env_passthrough;
    },
    get workspace_instructions() {
      return live.current.workspace_instructions;
    },
  };
  const file = new KnowledgeFile(data.path);
  const machine = machineOf(io);
  const knowledge = new EngineKnowledge({ machine, settings: programs, clock: io.clock, timers: io.timers, file });
  try {
    const deps = {
      store: data.store,
      clock,
      ids: createIds(clock),
      timers: io.timers,
      dataDir: data.path,
      runtime: createEngineRuntime(machine, programs, {
        clock: io.clock,
        timers: io.timers,
        file,
        knowledge,
        startResident: (_engine, start) => startResident(start, { ...machine, clock: io.clock, timers: io.timers }),
      }),
      queueLimit: () => live.current.queue_limit,
      hooks: namedHooks(settings.webhooks),
      runUrl: (runId: string) => {
        const base = options.baseUrl?.() ?? settings.public_url?.replace(/\/+$/, '') ?? '';
        return base === '' ? null : `${base}/runs/${runId}`;
      },
      runDefaults: () => runDefaultsOf(live.current),
      mayNeedProcess: serves && settings.sessions.sticky,
      ...ports,
    };
    const slots = (): number => live.current.slots ?? Math.max(2, io.machine.cores);
    const orchestrator = await Orchestrator.open(deps, {
      slots: slots(),
      recovery: settings.recovery,
      residents: { parkAfterMs: settings.sessions.park_after_sec * 1000, max: settings.sessions.max_resident },
      runsTurns,
      recoversBeside: serves,
      onFailure: toFailureCallback(log),
    });
    // Probes the engines early, so that the first runs need not.
    if (serves) void knowledge.learnAll(ENGINES);
    return {
      data,
      cluster,
      clock,
      orchestrator,
      knowledge,
      applySettings: () => orchestrator.setSlots(slots()),
      close: async () => {
        await orchestrator.close();
        await knowledge.close();
        await data.close();
      },
    };
  } catch (error) {
    await knowledge.close();
    await data.close();
    throw error;
  }
}

export function runDefaultsOf({ defaults, silence_notice_sec: silence }: Settings): RunDefaults {
  const { mode, permission, model, ...limits } = defaults;
  return { mode, permission, model, limits: { ...limits, silence_notice_sec: silence } };
}

// The actor of local commands: the owner of this account.
export function actorOf(io: Io): Actor {
  return { kind: 'user', name: io.machine.userName };
}

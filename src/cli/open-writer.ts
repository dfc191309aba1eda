// Opens the data directory to write, which one process at a time may do, with everything that plays runs.
import { appendFileSync, constants, existsSync, mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { namedHooks } from '../hooks/load-hooks.js';
import { ENGINES } from '../engines/registry.js';
import { createEngineHost } from '../host/engine-host.js';
import { EngineKnowledge } from '../host/engine-knowledge.js';
import { KnowledgeFile } from '../host/knowledge-file.js';
import { readSettings } from '../host/settings.js';
import { toTimestamp, type Clock } from '../kernel/clock.js';
import { createIds } from '../kernel/ids.js';
import { redact } from '../kernel/redact.js';
import { Orchestrator } from '../orchestrator/orchestrator.js';
import { RequestError } from '../run/request-error.js';
import type { Membership } from '../dispatch/postgres/join-cluster.js';
import type { DataDir } from '../store/sqlite/data-dir.js';
import type { Actor } from '../store/store.js';
import { safeText } from '../terminal/safe-text.js';
import { checkFolder } from './data-dir.js';
import type { Io } from './io.js';
import { machineOf } from './machine-of.js';
import { openToWrite } from './open-data.js';
import { reasonOf } from '../kernel/system-error.js';

// Folder by folder: mkdir's own way to do that never ends where nothing can be made, in /proc for one.
function makeFolder(path: string): void {
  const above = dirname(path);
  if (existsSync(path)) return;
  if (above !== path) makeFolder(above);
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    // Another process may have made it just now.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST')
      throw new RequestError('DATA_DIR_UNUSABLE', `the data directory ${path} cannot be made: ${reasonOf(error)}`);
  }
}

export interface OpenWriter {
  readonly data: DataDir;
  readonly cluster: Membership | null;
  readonly clock: Clock;
  readonly orchestrator: Orchestrator;
  readonly knowledge: EngineKnowledge;
  close(): Promise<void>;
}

export interface OpenOptions {
  // It stays: only then a process may wait with its run as long as the run does.
  readonly serves?: boolean;
  readonly plays?: boolean;
  // The address that people use, empty while it is not known; else public_url of the settings.
  readonly baseUrl?: () => string;
  readonly onFailure?: (runId: string, error: unknown) => void;
}

export async function openWriter(path: string, io: Io, options: OpenOptions = {}): Promise<OpenWriter> {
  const { plays = true, serves = false, onFailure = (runId, error) => logFailure(path, io, runId, error) } = options;
  checkFolder(path, constants.W_OK | constants.X_OK);
  const settings = readSettings(path);
  makeFolder(path);
  const { data, cluster, clock } = await openToWrite(path, io, settings, serves, (error) => onFailure('', error));
  const file = new KnowledgeFile(data.path);
  const knowledge = new EngineKnowledge({ machine: machineOf(io), settings, clock: io.clock, timers: io.timers, file });
  try {
    const deps = {
      store: data.store,
      clock,
      ids: createIds(clock),
      timers: io.timers,
      dataDir: data.path,
      host: createEngineHost(machineOf(io), settings, { clock: io.clock, timers: io.timers, file, knowledge }),
      queueLimit: settings.queue_limit,
      hooks: namedHooks(settings.webhooks),
      runUrl: (runId: string) => {
        const base = options.baseUrl?.() ?? settings.public_url?.replace(/\/+$/, '') ?? '';
        return base === '' ? null : `${base}/runs/${runId}`;
      },
      turnDefaults: { ...settings.defaults, silence_notice_sec: settings.silence_notice_sec },
      sticky: serves && settings.sessions.sticky,
      ...(cluster ? { cluster } : {}),
    };
    const slots = settings.slots ?? Math.max(2, io.machine.cores);
    const orchestrator = await Orchestrator.open(deps, {
      slots,
      recovery: settings.recovery,
      residents: { parkAfterMs: settings.sessions.park_after_sec * 1000, max: settings.sessions.max_resident },
      plays,
      onFailure,
    });
    // So that the first runs find out nothing by themselves.
    if (serves) void knowledge.learnAll(ENGINES);
    return {
      data,
      cluster,
      clock,
      orchestrator,
      knowledge,
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

// Who answers and cancels here: the person whose account it is.
export function actorOf(io: Io): Actor {
  return { kind: 'user', name: io.machine.userName };
}

// For the operator; nobody may be there to read it on a screen.
export function logFailure(path: string, io: Io, runId: string, error: unknown): void {
  const message = error instanceof Error ? (error.stack ?? error.message) : String(error);
  try {
    appendFileSync(
      join(path, 'parley.log'),
      JSON.stringify({
        ts: toTimestamp(io.clock.now()),
        run_id: runId === '' ? undefined : runId,
        error: safeText(redact(message)),
      }) + '\n',
      { mode: 0o600 },
    );
  } catch {
    // A log that cannot be written must not break what it tells of.
  }
}

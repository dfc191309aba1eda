// Prepares an instance and starts its app-server: finds the program, opens the folder and the home of the instance, and
// builds the environment.
import { realpathSync } from 'node:fs';
import { SETTINGS } from '../engines/codex/command.js';
import { codexHome } from '../engines/codex/home.js';
import type { User } from '../engines/engine.js';
import { buildEnvironment } from '../machine/homes/environment.js';
import { keyInstead } from '../machine/logins/find-login.js';
import { DEFAULT_TIMEOUT_MS } from '../jsonrpc/peer.js';
import type { Clock } from '../kernel/clock.js';
import { endLeftovers } from '../process/end-leftovers.js';
import { detachRecording } from '../process/recording.js';
import type { Timers } from '../process/timers.js';
import { openAgentFolder } from './agent-folder.js';
import { lockAgent } from './agent-lock.js';
import { openAgentHome } from './agent-home.js';
import { launch, type LaunchedServer } from './codex-app-server.js';
import { findCodex } from './find-codex.js';
import type { ClientInfo } from './protocol.js';

/** How to start a `codex app-server`. */
export interface StartOptions {
  /** The name of this agent within the task: up to 64 letters, digits, dots, dashes and underscores. */
  readonly instance: string;
  /** The folder of the task. Everything of the instance is stored in `agents/<instance>` below it. */
  readonly taskDir: string;
  /** The folder in which threads work by default; without it, `taskDir`. */
  readonly cwd?: string;
  /** The path or the name of the Codex program; by default `codex` on PATH. */
  readonly codexBin?: string;
  /** The folder for `CODEX_HOME`; by default `agents/<instance>/codex_home` in the task. */
  readonly codexHome?: string;
  /** Environment variables of the process, in addition to those that every engine gets from the user. */
  readonly env?: Readonly<Record<string, string>>;
  /** The user whose login and settings are used; by default the user of this process. */
  readonly user?: User;
  /** How long to wait for a response; by default 30 seconds. */
  readonly requestTimeoutMs?: number;
  /** How this client introduces itself to the server. */
  readonly clientInfo?: ClientInfo;
  /** Uses `codexHome` although it belonged to another instance, which must no longer use it. */
  readonly takesHomeOver?: boolean;
  /**
   * Takes the instance from an owner that has lost it: ends the processes on this machine whose marks start with this
   * text, and ignores the lock of the owner.
   */
  readonly passesOver?: string;
  /** The text by which the processes of the instance are found later; by default it contains the instance. */
  readonly mark?: string;
  /** Aborts the start: every started process is ended, and `start` rejects. */
  readonly signal?: AbortSignal;
  /** Methods of the server that are refused at once; by default those that only Codex's own clients can handle. */
  readonly unhandled?: readonly string[];
}

/** The parts of the environment that tests replace. */
export interface Surroundings {
  /** The user whose login and settings are used. */
  readonly user: User;
  /** The platform, for instance `linux-x64`. */
  readonly platform: string;
  /** The id of this process, which is written beside the lock of the instance. */
  readonly pid: number;
  /** The clock for timestamps. */
  readonly clock: Clock;
  /** The timers for timeouts. */
  readonly timers: Timers;
}

const UNHANDLED = ['currentTime/read', 'attestation/generate', 'account/chatgptAuthTokens/refresh', 'item/tool/call'];
const PARLEY: ClientInfo = { name: 'parley', title: 'Parley', version: '0.1.0' };

export async function startAppServer(
  options: StartOptions,
  { user, platform, pid, clock, timers }: Surroundings,
): Promise<LaunchedServer> {
  const { instance, taskDir, env = {} } = options;
  const codex = findCodex({
    named: options.codexBin,
    path: env['PATH'] ?? user.env['PATH'] ?? '',
    platform,
  });
  const folder = openAgentFolder(taskDir, instance);
  const { passesOver } = options;
  const pass = async (begin: string): Promise<void> => {
    await endLeftovers((other) => other.startsWith(begin), { graceMs: 0, timers });
    // A process on another machine may still write; detach the recording from it.
    await detachRecording(folder.recording);
  };
  const unlock = await lockAgent(folder.path, pid, passesOver === undefined ? undefined : () => pass(passesOver));
  try {
    // Processes that a dead owner left running would write into files that are now ours.
    const mark = options.mark ?? `app-server ${folder.path}`;
    await endLeftovers((other) => other === mark, { graceMs: 0, timers });
    const home = await openAgentHome(options.codexHome ?? folder.codexHome, {
      owner: folder.path,
      user,
      takesOver: options.takesHomeOver ?? false,
    });
    return await launch({
      instance,
      argv: [codex, 'app-server', ...SETTINGS.flatMap((setting) => ['-c', setting])],
      cwd: realpathSync(options.cwd ?? taskDir),
      env: {
        ...buildEnvironment({ home: codexHome }, { user, home: null, passthrough: [] }),
        ...keyInstead({ home: codexHome }, user),
        ...env,
        TMPDIR: home.temporary,
        CODEX_HOME: home.path,
      },
      mark,
      folder,
      home,
      initialize: {
        clientInfo: options.clientInfo ?? PARLEY,
        capabilities: { experimentalApi: true, requestAttestation: false },
      },
      timeoutMs: options.requestTimeoutMs ?? DEFAULT_TIMEOUT_MS,
      unhandled: new Set(options.unhandled ?? UNHANDLED),
      ...(options.signal ? { signal: options.signal } : {}),
      clock,
      timers,
      ended: unlock,
    });
  } catch (error) {
    unlock();
    throw error;
  }
}

// Makes an instance ready and starts its app-server: the program, the folder of the instance, its home, its
// environment.
import { realpathSync } from 'node:fs';
import { SETTINGS } from '../engines/codex/command.js';
import { codexHome } from '../engines/codex/home.js';
import type { User } from '../engines/engine.js';
import { buildEnvironment } from '../engines/environment.js';
import { keyInstead } from '../engines/find-login.js';
import { DEFAULT_TIMEOUT_MS } from '../jsonrpc/peer.js';
import type { Clock } from '../kernel/clock.js';
import { endLeftovers } from '../process/end-leftovers.js';
import type { Timers } from '../process/timers.js';
import { openAgentFolder } from './agent-folder.js';
import { lockAgent } from './agent-lock.js';
import { detachRecording } from './recording.js';
import { CodexHome } from './codex-home.js';
import { launch, type CodexAppServer } from './codex-app-server.js';
import { findCodex } from './find-codex.js';
import type { ClientInfo } from './protocol.js';

export interface StartOptions {
  // The name of this agent within the task.
  readonly instance: string;
  readonly taskDir: string;
  // Where its threads work unless they are told otherwise; without it, the folder of the task.
  readonly cwd?: string;
  // A path or a name; without it, `codex` on PATH.
  readonly codexBin?: string;
  // Without it, agents/<instance>/codex_home in the task.
  readonly codexHome?: string;
  // For the process, beside what every engine is given of the user's environment.
  readonly env?: Readonly<Record<string, string>>;
  // Whose login and settings are brought in.
  readonly user?: User;
  readonly requestTimeoutMs?: number;
  readonly clientInfo?: ClientInfo;
  // The home was another instance's, which is known not to use it any more.
  readonly takesHomeOver?: boolean;
  // Whoever has the instance has lost it: its processes, whose marks begin so, are ended as far as they are here, and
  // its lock does not count.
  readonly passesOver?: string;
  // By which its processes are found again; without it, one that names the instance.
  readonly mark?: string;
  // Gives the start up: what was started is ended, and the start fails.
  readonly signal?: AbortSignal;
  // Requests of the server that are refused at once, by method; without it, those that need what only a client of
  // Codex's own has.
  readonly unhandled?: readonly string[];
}

export interface Surroundings {
  readonly user: User;
  // For instance linux-x64.
  readonly platform: string;
  readonly pid: number;
  readonly clock: Clock;
  readonly timers: Timers;
}

const UNHANDLED = ['currentTime/read', 'attestation/generate', 'account/chatgptAuthTokens/refresh', 'item/tool/call'];
const PARLEY: ClientInfo = { name: 'parley', title: 'Parley', version: '0.1.0' };

export async function startAppServer(
  options: StartOptions,
  { user, platform, pid, clock, timers }: Surroundings,
): Promise<CodexAppServer> {
  const { instance, taskDir, env = {} } = options;
  const codex = findCodex(options.codexBin, env['PATH'] ?? user.env['PATH'] ?? '', platform);
  const folder = openAgentFolder(taskDir, instance);
  const { passesOver } = options;
  const pass = async (begin: string): Promise<void> => {
    await endLeftovers((found) => found.startsWith(begin), { graceMs: 0, timers });
    // On another machine it may still print.
    await detachRecording(folder.recording);
  };
  const unlock = await lockAgent(folder.path, pid, passesOver === undefined ? undefined : () => pass(passesOver));
  try {
    // What a dead owner left running would write into what is now ours.
    const mark = options.mark ?? `app-server ${folder.path}`;
    await endLeftovers((found) => found === mark, { graceMs: 0, timers });
    const home = await CodexHome.open(options.codexHome ?? folder.codexHome, folder.path, user, options.takesHomeOver);
    return await launch({
      instance,
      argv: [codex, 'app-server', ...SETTINGS.flatMap((setting) => ['-c', setting])],
      cwd: realpathSync(options.cwd ?? taskDir),
      env: {
        ...buildEnvironment({ home: codexHome }, user, null, []),
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

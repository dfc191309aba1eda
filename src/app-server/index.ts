// `codex app-server` as a library: conversations with Codex in which every line is recorded. The public entry point.
import { homedir } from 'node:os';
import { systemClock } from '../kernel/clock.js';
import { systemTimers } from '../process/timers.js';
import type { CodexAppServer } from './codex-app-server.js';
import { startAppServer, type StartOptions, type Surroundings } from './start-app-server.js';

export { AppServerError, type AppServerErrorCode } from './app-server-error.js';
export { JsonRpcError, PeerEndedError, RequestTimeoutError } from '../jsonrpc/errors.js';
export type { AskedRequest } from '../jsonrpc/peer.js';
export type { RequestId } from '../jsonrpc/read-message.js';
export type { RecordingPaths } from '../process/recording.js';
export type { ServerEnd } from '../process/server-process.js';
export type { CodexAppServer } from './codex-app-server.js';
export type * from './protocol.js';
export type { EventOptions, ServerEvent } from './server-event.js';
export type { StartOptions, Surroundings } from './start-app-server.js';
export type { Threads } from './threads.js';
export type { Turns } from './turns.js';

/**
 * Starts a `codex app-server`. Resolves when the server has responded to `initialize`. Rejects with an
 * `AppServerError`, for instance `codex_not_found`.
 */
export function start(
  options: StartOptions,
  surroundings: Partial<Omit<Surroundings, 'user'>> = {},
): Promise<CodexAppServer> {
  return startAppServer(options, {
    user: options.user ?? { home: homedir(), env: process.env },
    platform: `${process.platform}-${process.arch}`,
    pid: process.pid,
    clock: systemClock,
    timers: systemTimers,
    ...surroundings,
  });
}

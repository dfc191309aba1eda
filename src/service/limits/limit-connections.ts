// Limits how many clients are served at once, so that the process keeps enough open files for its own work. Without a
// file for the database or a log nothing could be stored, and clients that merely connect must not be able to cause
// that.
import { readFileSync } from 'node:fs';

export interface ConnectionLimits {
  readonly connections: number;
  readonly streams: number;
  // The warning to log if the limits are lower than configured.
  readonly shortage: string | null;
}

// Connections for requests that are not streams.
const BESIDE_STREAMS = 1000;

// One file for the connection, one for what the request opens, and as many again for other work.
const FILES_PER_CONNECTION = 3;

// With fewer connections, this share may be streams; the rest is for other requests.
const SHARE_OF_STREAMS = 0.8;

export function limitConnections(streams: number, openFiles: number = readOpenFiles()): ConnectionLimits {
  const wanted = streams + BESIDE_STREAMS;
  const connections = Math.max(1, Math.floor(openFiles / FILES_PER_CONNECTION));
  if (connections >= wanted) return { connections: wanted, streams, shortage: null };
  return {
    connections,
    streams: Math.min(streams, Math.max(1, Math.floor(connections * SHARE_OF_STREAMS))),
    shortage:
      `not more than ${connections} connections are served at once: this process may have ${openFiles} ` +
      'files open (ulimit -n)',
  };
}

// How many files this process may have open; Infinity if the system does not report it in a file.
export function readOpenFiles(path = '/proc/self/limits'): number {
  try {
    const soft = /^Max open files\s+(\d+)/m.exec(readFileSync(path, 'utf8'))?.[1];
    return soft === undefined ? Infinity : Number(soft);
  } catch {
    return Infinity;
  }
}

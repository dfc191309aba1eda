// How many clients are served at once: as many as wanted, if the process may have so many files open beside those that
// its work needs. Without a file for the database or a log nothing could be stored, and that must not be in the hands
// of those who only connect.
import { readFileSync } from 'node:fs';

export interface ConnectionLimits {
  readonly connections: number;
  readonly streams: number;
  // What is to be told, if these are fewer than wanted.
  readonly shortage: string | null;
}

// Connections of those who only call.
const BESIDE_STREAMS = 1000;

// One for the connection, one for what is opened to answer it, and as many again for the work.
const FILES_PER_CONNECTION = 3;

// Of fewer connections, so much may be streams; the others are for those who only call.
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

// How many files this process may have open; without an end where the system does not say it in a file.
export function readOpenFiles(path = '/proc/self/limits'): number {
  try {
    const soft = /^Max open files\s+(\d+)/m.exec(readFileSync(path, 'utf8'))?.[1];
    return soft === undefined ? Infinity : Number(soft);
  } catch {
    return Infinity;
  }
}

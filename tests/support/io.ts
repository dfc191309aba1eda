// The environment of a command that a test calls directly: test streams, no terminal, nothing of this process.
import type { Readable, Writable } from 'node:stream';
import type { Io } from '../../src/cli/io.js';
import { systemTimers } from '../../src/process/timers.js';

export function createIo(
  streams: { readonly stdin: Readable; readonly stdout: Writable; readonly stderr: Writable },
  changes: Partial<Io> = {},
): Io {
  return {
    ...streams,
    clock: { now: () => Date.UTC(2026, 10, 15, 12) },
    timers: systemTimers,
    env: {},
    cwd: '/nowhere',
    machine: {
      home: '/nowhere',
      userName: 'ann',
      hostName: 'desk',
      platform: 'linux',
      arch: 'x64',
      pid: 1,
      cores: 2,
      node: process.execPath,
      entry: '',
      programs: '',
    },
    terminal: { stdin: false, stdout: false, stderr: false, columns: () => 80, rows: () => 24 },
    onSignal: () => () => {},
    onCrash: () => {},
    holdTerminal: () => () => {},
    setBrokenPipeCode: () => {},
    parent: null,
    ...changes,
  };
}

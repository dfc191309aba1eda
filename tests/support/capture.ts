// Calls a command directly and returns its exit code and everything it printed.
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import type { Io } from '../../src/cli/io.js';
import { createIo } from './io.js';

export interface Captured {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export async function capture(run: (io: Io) => Promise<number>, changes: Partial<Io> = {}): Promise<Captured> {
  const streams = { stdin: new PassThrough(), stdout: new PassThrough(), stderr: new PassThrough() };
  const printed = Promise.all([text(streams.stdout), text(streams.stderr)]);
  const code = await run(createIo(streams, changes));
  streams.stdout.end();
  streams.stderr.end();
  const [stdout, stderr] = await printed;
  return { code, stdout, stderr };
}

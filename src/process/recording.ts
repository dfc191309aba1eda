// The bytes that a server and its client sent, as append-only files in their order. Bytes are in their file before any
// consumer gets them.
import { closeSync, writeSync } from 'node:fs';
import { rename, rm, type FileHandle } from 'node:fs/promises';
import { openFile, openToAppend, openToAppendSync, readPieces } from '../files/read-file.js';
import { AppendLog, closeLogs } from './append-log.js';

/** The files in which the lines of both sides are recorded. */
export interface RecordingPaths {
  /** Every line that was sent to the server. */
  readonly requests: string;
  /** Every line of the server. */
  readonly events: string;
  /** The standard error of the server. */
  readonly stderr: string;
}

export class Recording {
  readonly events: AppendLog;
  readonly stderr: AppendLog;
  readonly #requests: number;

  private constructor(requests: number, events: AppendLog, stderr: AppendLog) {
    this.#requests = requests;
    this.events = events;
    this.stderr = stderr;
  }

  static async open(paths: RecordingPaths): Promise<Recording> {
    const opened: AppendLog[] = [];
    const open = async (path: string): Promise<AppendLog> => {
      const log = await AppendLog.open(path);
      opened.push(log);
      return log;
    };
    try {
      const [events, stderr] = [await open(paths.events), await open(paths.stderr)];
      // Ends a line that a crash has cut off. From then on requests are written by descriptor, without buffering.
      await (await AppendLog.open(paths.requests)).close();
      return new Recording(openToAppendSync(paths.requests), events, stderr);
    } catch (error) {
      await closeLogs(opened).catch(() => {});
      throw error;
    }
  }

  // Returns when the request is in its file.
  request(line: string): void {
    const bytes = Buffer.from(line);
    for (let at = 0; at < bytes.length;) at += writeSync(this.#requests, bytes, at);
  }

  // The owner of the process closes the logs of its output.
  closeRequests(): void {
    closeSync(this.#requests);
  }

  async close(): Promise<void> {
    this.closeRequests();
    await closeLogs([this.events, this.stderr]);
  }
}

// Replaces the files with copies, so that a process that still has the old ones open can no longer write to ours.
export async function detachRecording(paths: RecordingPaths): Promise<void> {
  for (const path of [paths.requests, paths.events, paths.stderr]) {
    const file = await openFile(path);
    if (!file) continue;
    try {
      await copyTo(`${path}.kept`, file);
    } finally {
      await file.close();
    }
    await rename(`${path}.kept`, path);
  }
}

async function copyTo(path: string, source: FileHandle): Promise<void> {
  await rm(path, { recursive: true, force: true });
  const target = await openToAppend(path);
  try {
    for await (const piece of readPieces(source, 0, (await source.stat()).size)) await target.writeFile(piece);
  } finally {
    await target.close();
  }
}

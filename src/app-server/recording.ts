// What both sides said, as files that only grow: exactly the bytes, in their order, each there before anybody hears of
// it.
import { closeSync, writeSync } from 'node:fs';
import { rename, rm, type FileHandle } from 'node:fs/promises';
import { openFile, openToAppend, openToAppendSync, readPieces } from '../files/read-file.js';
import type { RecordingPaths } from './agent-folder.js';

const LF = 0x0a;

export class Recording {
  readonly events: GrowingFile;
  readonly stderr: GrowingFile;
  readonly #requests: number;

  private constructor(requests: number, events: GrowingFile, stderr: GrowingFile) {
    this.#requests = requests;
    this.events = events;
    this.stderr = stderr;
  }

  static async open(paths: RecordingPaths): Promise<Recording> {
    const opened: GrowingFile[] = [];
    try {
      const [events, stderr, requests] = [
        await GrowingFile.open(paths.events, opened),
        await GrowingFile.open(paths.stderr, opened),
        await GrowingFile.open(paths.requests, opened),
      ];
      // Made sound like the other two; then written at once, so that no request is sent that is not there.
      await requests.close();
      return new Recording(openToAppendSync(paths.requests), events, stderr);
    } catch (error) {
      await Promise.allSettled(opened.map((file) => file.close()));
      throw error;
    }
  }

  request(line: string): void {
    const bytes = Buffer.from(line);
    for (let at = 0; at < bytes.length;) at += writeSync(this.#requests, bytes, at);
  }

  async close(): Promise<void> {
    closeSync(this.#requests);
    await Promise.all([this.events.close(), this.stderr.close()]);
  }
}

// Whoever has these files open writes into nothing from here on: they are others, with all that was in them.
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

export class GrowingFile {
  readonly #file: FileHandle;
  #size: number;

  private constructor(file: FileHandle, size: number) {
    this.#file = file;
    this.#size = size;
  }

  // A line that a crash has cut off is ended, so that the next one begins as a line.
  static async open(path: string, opened: GrowingFile[] = []): Promise<GrowingFile> {
    const file = await openToAppend(path, { reads: true });
    try {
      const { size } = await file.stat();
      const grown = new GrowingFile(file, size);
      const last = Buffer.alloc(1);
      if (size > 0) await file.read(last, 0, 1, size - 1);
      if (size > 0 && last[0] !== LF) await grown.append(Buffer.from([LF]));
      opened.push(grown);
      return grown;
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  get size(): number {
    return this.#size;
  }

  async append(chunk: Buffer): Promise<void> {
    for (let at = 0; at < chunk.length;) {
      const { bytesWritten } = await this.#file.write(chunk, at, chunk.length - at);
      this.#size += bytesWritten;
      at += bytesWritten;
    }
  }

  async close(): Promise<void> {
    await this.#file.close();
  }
}

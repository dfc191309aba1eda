// What there is now of the bytes of a log that a turn has read: they are hashed piece by piece, and nothing else of the
// file is read.
import { createHash } from 'node:crypto';
import { openFile, readPieces, UnsafeFileError } from '../files/read-file.js';

export interface MeasuredLog {
  // Of the whole file; 0 if it is missing.
  readonly size: number;
  readonly sha256: string;
  // Why it is not a log any more, or null.
  readonly problem: string | null;
}

export async function measureLog(path: string, from: number, bytes: number): Promise<MeasuredLog> {
  const hash = createHash('sha256');
  try {
    const file = await openFile(path);
    if (!file) return { size: 0, sha256: hash.digest('hex'), problem: null };
    try {
      const { size } = await file.stat();
      for await (const piece of readPieces(file, from, from + bytes)) hash.update(piece);
      return { size, sha256: hash.digest('hex'), problem: null };
    } finally {
      await file.close();
    }
  } catch (error) {
    if (!(error instanceof UnsafeFileError)) throw error;
    return { size: 0, sha256: '', problem: error.message };
  }
}

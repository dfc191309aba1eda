// Hashes files piece by piece, so their size does not matter.
import { createHash } from 'node:crypto';
import { openFile, readPieces, UnsafeFileError } from '../files/read-file.js';
import type { Message } from '../kernel/message.js';

export interface MeasuredLog {
  // Size of the whole file; 0 if it is missing.
  readonly size: number;
  // Hash of the requested bytes.
  readonly sha256: string;
  // Why the file cannot be read as a log, or null.
  readonly problem: Message | string | null;
}

export interface LogRange {
  readonly from: number;
  readonly bytes: number;
  // Receives how many of the bytes were read so far.
  readonly onBytes?: (count: number) => void;
}

export async function measureLog(path: string, { from, bytes, onBytes }: LogRange): Promise<MeasuredLog> {
  const hash = createHash('sha256');
  try {
    const file = await openFile(path);
    if (!file) return { size: 0, sha256: hash.digest('hex'), problem: null };
    try {
      const { size } = await file.stat();
      let count = 0;
      for await (const piece of readPieces(file, from, from + bytes)) {
        hash.update(piece);
        count += piece.length;
        onBytes?.(count);
      }
      return { size, sha256: hash.digest('hex'), problem: null };
    } finally {
      await file.close();
    }
  } catch (error) {
    if (!(error instanceof UnsafeFileError)) throw error;
    return { size: 0, sha256: '', problem: error.message };
  }
}

// Whether a file has exactly these bytes. A longer file is not read.
export async function compareFile(
  path: string,
  { bytes, sha256 }: { readonly bytes: number; readonly sha256: string },
): Promise<'same' | 'different' | 'missing'> {
  const file = await openFile(path).catch((error: unknown) => {
    if (error instanceof UnsafeFileError) return 'unsafe' as const;
    throw error;
  });
  if (file === 'unsafe') return 'different';
  if (file === null) return 'missing';
  try {
    if ((await file.stat()).size !== bytes) return 'different';
    const hash = createHash('sha256');
    for await (const piece of readPieces(file, 0, bytes)) hash.update(piece);
    return hash.digest('hex') === sha256 ? 'same' : 'different';
  } finally {
    await file.close();
  }
}

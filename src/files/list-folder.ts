// The one way to list folders that agents or repositories can write: no more entries at a time than a bound, and names
// as bytes, since a name need not be UTF-8.
import { opendir } from 'node:fs/promises';

export interface FolderEntry {
  readonly name: Buffer;
  readonly kind: 'file' | 'folder' | 'other';
}

// Pieces of at most `most` entries, each in the order of its names. Throws what the system says of a folder that cannot
// be read.
export async function* listFolder(path: string | Buffer, most: number): AsyncGenerator<FolderEntry[], void> {
  // The type of Node's own declaration knows only names that are texts.
  const folder = await opendir(path as string, { encoding: 'buffer' as BufferEncoding, bufferSize: 256 });
  let piece: FolderEntry[] = [];
  for await (const entry of folder) {
    const name = entry.name as unknown as Buffer;
    piece.push({ name, kind: entry.isFile() ? 'file' : entry.isDirectory() ? 'folder' : 'other' });
    if (piece.length < most) continue;
    yield sorted(piece);
    piece = [];
  }
  if (piece.length > 0) yield sorted(piece);
}

// Whether there is anything in it, or it cannot be looked into.
export async function hasEntries(path: string): Promise<boolean> {
  try {
    const folder = await opendir(path, { bufferSize: 1 });
    const first = await folder.read();
    await folder.close();
    return first !== null;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ENOENT';
  }
}

// The name as text, or null if its bytes are not UTF-8.
export function textOf(name: Buffer): string | null {
  const text = name.toString('utf8');
  return Buffer.from(text).equals(name) ? text : null;
}

// Readable for people and unambiguous: bytes outside ASCII and the backslash as \xNN.
export function escapeName(name: Buffer): string {
  return [...name]
    .map((byte) =>
      byte >= 0x20 && byte < 0x7f && byte !== 0x5c
        ? String.fromCharCode(byte)
        : `\\x${byte.toString(16).toUpperCase().padStart(2, '0')}`,
    )
    .join('');
}

function sorted(entries: FolderEntry[]): FolderEntry[] {
  return entries.toSorted((a, b) => Buffer.compare(a.name, b.name));
}

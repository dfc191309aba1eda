// Lists folders that agents or repositories can write; nothing else in Parley may list them. Yields a limited number of
// entries at a time, and names as bytes, because a file name need not be UTF-8.
import { opendir } from 'node:fs/promises';

export interface FolderEntry {
  readonly name: Buffer;
  readonly kind: 'file' | 'folder' | 'other';
}

// Yields batches of at most `most` entries, each sorted by name. Throws the system error if the folder cannot be read.
export async function* listFolder(path: string | Buffer, most: number): AsyncGenerator<FolderEntry[], void> {
  // Node's type declaration only knows names that are strings.
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

// Whether the folder has entries. Also true if it cannot be read.
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

// Returns the name readable and unambiguous: bytes outside ASCII and the backslash become \xNN.
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

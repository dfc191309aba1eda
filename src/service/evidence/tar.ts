// Writes a tar archive that every tar can read (POSIX ustar; long names and large files in extended pax headers). Works
// in pieces: no file is held in memory completely.
const BLOCK = 512;
// The largest size that eleven octal digits can express.
const MAX_SIZE = 0o77777777777;
const NAME_BYTES = 100;
const PREFIX_BYTES = 155;

export interface TarEntry {
  // A relative path, separated by /; bytes if it is not UTF-8.
  readonly path: string | Buffer;
  readonly bytes: number;
  readonly modifiedMs: number;
  readonly content: AsyncIterable<Uint8Array>;
}

export async function* writeTar(entries: AsyncIterable<TarEntry>): AsyncGenerator<Buffer, void> {
  for await (const { path, bytes, modifiedMs, content } of entries) {
    yield* buildHeaders(path, bytes, modifiedMs);
    // Writes exactly as many bytes as the header states, even if the file changes meanwhile.
    let left = bytes;
    for await (const chunk of content) {
      const piece = Buffer.from(chunk.buffer, chunk.byteOffset, Math.min(chunk.length, left));
      left -= piece.length;
      if (piece.length > 0) yield piece;
      if (left === 0) break;
    }
    for (; left > 0; left -= BLOCK) yield Buffer.alloc(Math.min(left, BLOCK));
    if (bytes % BLOCK > 0) yield Buffer.alloc(BLOCK - (bytes % BLOCK));
  }
  yield Buffer.alloc(2 * BLOCK);
}

function* buildHeaders(path: string | Buffer, bytes: number, modifiedMs: number): Generator<Buffer> {
  const whole = Buffer.from(path);
  const parts = splitPath(whole);
  const mtime = Math.max(0, Math.floor(modifiedMs / 1000));
  if (!parts || bytes > MAX_SIZE) {
    // A name in a record is UTF-8 unless the previous record states otherwise.
    const binary = typeof path === 'string' ? [] : [buildRecord('hdrcharset', Buffer.from('BINARY'))];
    const size = bytes > MAX_SIZE ? [buildRecord('size', Buffer.from(String(bytes)))] : [];
    const records = Buffer.concat([...binary, buildRecord('path', whole), ...size]);
    const parts = { name: Buffer.from('PaxHeader'), prefix: Buffer.alloc(0) };
    yield buildHeader({ ...parts, size: records.length, mtime, type: 'x' });
    yield records;
    if (records.length % BLOCK > 0) yield Buffer.alloc(BLOCK - (records.length % BLOCK));
  }
  yield buildHeader({
    ...(parts ?? { name: whole.subarray(0, NAME_BYTES), prefix: Buffer.alloc(0) }),
    size: bytes > MAX_SIZE ? 0 : bytes,
    mtime,
    type: '0',
  });
}

interface Header {
  readonly name: Buffer;
  readonly prefix: Buffer;
  readonly size: number;
  // In seconds.
  readonly mtime: number;
  // 0: a file, x: the pax records of the next file.
  readonly type: '0' | 'x';
}

function buildHeader({ name, prefix, size, mtime, type }: Header): Buffer {
  const header = Buffer.alloc(BLOCK);
  name.copy(header, 0);
  header.write(
    `${octal(0o600, 7)}\0${octal(0, 7)}\0${octal(0, 7)}\0${octal(size, 11)}\0${octal(mtime, 11)}\0        ${type}`,
    100,
    'latin1',
  );
  header.write('ustar\x0000', 257, 'latin1');
  prefix.copy(header, 345);
  // The checksum treats its own field as blanks.
  header.write(
    `${octal(
      header.reduce((sum, byte) => sum + byte, 0),
      6,
    )}\0 `,
    148,
    'latin1',
  );
  return header;
}

function octal(value: number, digits: number): string {
  return value.toString(8).padStart(digits, '0');
}

// Splits the path at a / so that both parts fit; null: it is too long.
function splitPath(whole: Buffer): { name: Buffer; prefix: Buffer } | null {
  if (whole.length <= NAME_BYTES) return { name: whole, prefix: Buffer.alloc(0) };
  for (let at = whole.indexOf('/'); at >= 0 && at <= PREFIX_BYTES; at = whole.indexOf('/', at + 1)) {
    if (at > 0 && whole.length - at - 1 <= NAME_BYTES && whole.length - at - 1 > 0)
      return { name: whole.subarray(at + 1), prefix: whole.subarray(0, at) };
  }
  return null;
}

// "LENGTH name=value\n", where the length includes itself.
function buildRecord(name: string, value: Buffer): Buffer {
  const rest = Buffer.concat([Buffer.from(` ${name}=`), value, Buffer.from('\n')]);
  const bytes = rest.length;
  let length = bytes + String(bytes).length;
  if (bytes + String(length).length !== length) length = bytes + String(length).length;
  return Buffer.concat([Buffer.from(String(length)), rest]);
}

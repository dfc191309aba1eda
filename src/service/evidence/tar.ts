// An archive in the form that every tar reads (POSIX ustar; a longer name, or a file too large for it, in the extended
// header of pax). Made piece by piece: no file is ever held whole.
const BLOCK = 512;
// The largest size that eleven octal digits can say.
const MAX_SIZE = 0o77777777777;
const NAME_BYTES = 100;
const PREFIX_BYTES = 155;

export interface TarEntry {
  // Relative, with / between its parts; bytes, where they are not UTF-8.
  readonly path: string | Buffer;
  readonly bytes: number;
  readonly modifiedMs: number;
  readonly content: AsyncIterable<Uint8Array>;
}

export async function* writeTar(entries: AsyncIterable<TarEntry>): AsyncGenerator<Buffer, void> {
  for await (const { path, bytes, modifiedMs, content } of entries) {
    yield* buildHeaders(path, bytes, modifiedMs);
    // Exactly as many as the header has said, whatever becomes of the file meanwhile.
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
    // A name in a record is UTF-8, unless the record before it says otherwise.
    const binary = typeof path === 'string' ? [] : [buildRecord('hdrcharset', Buffer.from('BINARY'))];
    const size = bytes > MAX_SIZE ? [buildRecord('size', Buffer.from(String(bytes)))] : [];
    const records = Buffer.concat([...binary, buildRecord('path', whole), ...size]);
    yield buildHeader({ name: Buffer.from('PaxHeader'), prefix: Buffer.alloc(0) }, records.length, mtime, 'x');
    yield records;
    if (records.length % BLOCK > 0) yield Buffer.alloc(BLOCK - (records.length % BLOCK));
  }
  yield buildHeader(
    parts ?? { name: whole.subarray(0, NAME_BYTES), prefix: Buffer.alloc(0) },
    bytes > MAX_SIZE ? 0 : bytes,
    mtime,
    '0',
  );
}

function buildHeader(
  { name, prefix }: { name: Buffer; prefix: Buffer },
  size: number,
  mtime: number,
  type: '0' | 'x',
): Buffer {
  const header = Buffer.alloc(BLOCK);
  name.copy(header, 0);
  header.write(
    `${octal(0o600, 7)}\0${octal(0, 7)}\0${octal(0, 7)}\0${octal(size, 11)}\0${octal(mtime, 11)}\0        ${type}`,
    100,
    'latin1',
  );
  header.write('ustar\x0000', 257, 'latin1');
  prefix.copy(header, 345);
  // The sum counts its own place as blanks.
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

// Divided at a / so that both parts have room; null: it is too long for that.
function splitPath(whole: Buffer): { name: Buffer; prefix: Buffer } | null {
  if (whole.length <= NAME_BYTES) return { name: whole, prefix: Buffer.alloc(0) };
  for (let at = whole.indexOf('/'); at >= 0 && at <= PREFIX_BYTES; at = whole.indexOf('/', at + 1)) {
    if (at > 0 && whole.length - at - 1 <= NAME_BYTES && whole.length - at - 1 > 0)
      return { name: whole.subarray(at + 1), prefix: whole.subarray(0, at) };
  }
  return null;
}

// "LENGTH name=value\n", where the length counts itself too.
function buildRecord(name: string, value: Buffer): Buffer {
  const rest = Buffer.concat([Buffer.from(` ${name}=`), value, Buffer.from('\n')]);
  const bytes = rest.length;
  let length = bytes + String(bytes).length;
  if (bytes + String(length).length !== length) length = bytes + String(length).length;
  return Buffer.concat([Buffer.from(String(length)), rest]);
}

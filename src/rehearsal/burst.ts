// Many lines, fast: lineAt(0) … lineAt(count - 1) in pieces of 64 KiB, each written before the next is made.

const WRITE_BYTES = 64 * 1024;

export async function writeBurst(
  write: (bytes: Buffer) => Promise<void>,
  count: number,
  lineAt: (index: number) => string,
): Promise<void> {
  let pending: string[] = [];
  let length = 0;
  for (let index = 0; index < count; index += 1) {
    const line = lineAt(index);
    pending.push(line);
    length += line.length;
    if (length < WRITE_BYTES && index < count - 1) continue;
    const bytes = Buffer.from(pending.join(''));
    for (let at = 0; at < bytes.length; at += WRITE_BYTES) await write(bytes.subarray(at, at + WRITE_BYTES));
    pending = [];
    length = 0;
  }
}

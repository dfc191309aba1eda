// Writes to stdout and stderr and waits until the reader took it: back-pressure reaches the script, and nothing is lost
// when the process then ends by whatever means.
const WRITE_BYTES = 64 * 1024;

// A reader that went away ends the process, quietly.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => process.exit(1));

export function write(stream, data) {
  return new Promise((resolve) => {
    stream.write(data, resolve);
  });
}

export function printLine(event) {
  return write(process.stdout, `${JSON.stringify(event)}\n`);
}

export function complain(text) {
  return write(process.stderr, `${text}\n`);
}

// Many lines, fast: lineAt(0) … lineAt(count - 1) in writes of 64 KiB.
export async function printBurst(count, lineAt) {
  let pending = [];
  let length = 0;
  for (let index = 0; index < count; index += 1) {
    const line = lineAt(index);
    pending.push(line);
    length += line.length;
    if (length < WRITE_BYTES && index < count - 1) continue;
    const bytes = Buffer.from(pending.join(''));
    for (let at = 0; at < bytes.length; at += WRITE_BYTES) await write(process.stdout, bytes.subarray(at, at + WRITE_BYTES));
    pending = [];
    length = 0;
  }
}

// Writes to stdout and stderr and waits until the reader has read it: the script sees back-pressure, and nothing is
// lost when the process then ends in any way.
import { writeBurst } from '../../dist/rehearsal/burst.js';

// A reader that disconnects ends the process, without a message.
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

// Writes lineAt(0) … lineAt(count - 1), fast.
export function printBurst(count, lineAt) {
  return writeBurst((bytes) => write(process.stdout, bytes), count, lineAt);
}

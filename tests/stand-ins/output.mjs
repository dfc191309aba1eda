// Writes to stdout and stderr and waits until the reader took it: back-pressure reaches the script, and nothing is lost
// when the process then ends by whatever means.
import { writeBurst } from '../../dist/rehearsal/burst.js';

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

// lineAt(0) … lineAt(count - 1), fast.
export function printBurst(count, lineAt) {
  return writeBurst((bytes) => write(process.stdout, bytes), count, lineAt);
}

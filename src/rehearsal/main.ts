// The rehearsal as a program: gives a turn its arguments, its streams and its home, and ends with its exit code.
import { randomUUID } from 'node:crypto';
import { homedir } from 'node:os';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArguments, USAGE } from './arguments.js';
import { playTurn, type Stage } from './play.js';
import { REHEARSAL_VERSION } from './version.js';

// A reader that went away ends the process, quietly.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => process.exit(1));

const stage: Stage = {
  home: process.env['HOME'] ?? homedir(),
  newId: () => randomUUID(),
  readPrompt: () => text(process.stdin),
  print: (bytes) => write(process.stdout, bytes),
  complain: (bytes) => write(process.stderr, bytes),
  sleep: (ms) => sleep(ms),
  hang,
  crash: () => {
    process.kill(process.pid, 'SIGKILL');
    return hang();
  },
};

process.exitCode = await run();

async function run(): Promise<number> {
  const options = parseArguments(process.argv.slice(2));
  switch (options.type) {
    case 'turn':
      return playTurn(options.call, stage);
    case 'version':
      await stage.print(`rehearsal ${REHEARSAL_VERSION}\n`);
      return 0;
    case 'wrong':
      await stage.complain(`Error: ${options.problem}\n${USAGE}\n`);
      return 2;
  }
}

// Back-pressure reaches the script, and nothing is lost when the process then ends by whatever means.
function write(stream: NodeJS.WriteStream, bytes: string | Buffer): Promise<void> {
  return new Promise((resolve) => {
    stream.write(bytes, () => resolve());
  });
}

function hang(): Promise<never> {
  return new Promise(() => {
    setInterval(() => {}, 1 << 30);
  });
}

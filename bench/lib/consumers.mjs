// Starts lib/consume.mjs for one turn, on the core that the engine does not use, and computes figures from its report.
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { isPinned, newFolder, removeFolder } from './systems.mjs';

const CONSUME = fileURLToPath(new URL('./consume.mjs', import.meta.url));
// The dialect of Codex has one more message than requested, which reports the end.
const isCodex = (consumer) => consumer !== 'acp-sdk';

// `script` replaces the script of this tree.
export async function consume(consumer, { events: asked, bytes, script = CONSUME }) {
  const folder = newFolder();
  try {
    const command = [
      ...(isPinned ? ['taskset', '-c', '1'] : []),
      process.execPath,
      script,
      consumer,
      folder,
      String(asked),
      String(bytes),
    ];
    const { stdout } = await promisify(execFile)(command[0], command.slice(1));
    const { messages, ms, cpu, peak } = JSON.parse(stdout.trim().split('\n').at(-1));
    return {
      'events/s': asked / (ms / 1000),
      'µs/event': cpu / asked,
      'peak MiB': peak,
      lost: asked + Number(isCodex(consumer)) - messages,
    };
  } finally {
    removeFolder(folder);
  }
}

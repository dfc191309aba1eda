// Starts lib/consume.mjs for one turn, on the core that the engine does not have, and makes figures of what it tells.
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { isPinned, newFolder, removeFolder } from './systems.mjs';

const CONSUME = fileURLToPath(new URL('./consume.mjs', import.meta.url));
// Those of Codex say more than the messages: that it begins, and how it ends.
const LEAST_BESIDE = { bare: 4, 'codex-sdk': 4, 'acp-sdk': 0, parser: 4, parley: 4 };

export async function consume(way, { events: asked, bytes }) {
  const folder = newFolder();
  try {
    const command = [...(isPinned ? ['taskset', '-c', '1'] : []), process.execPath, CONSUME, way, folder, String(asked), String(bytes)];
    const { stdout } = await promisify(execFile)(command[0], command.slice(1));
    const { events, ms, cpu, peak } = JSON.parse(stdout.trim().split('\n').at(-1));
    return { 'events/s': asked / (ms / 1000), 'µs/event': cpu / asked, 'peak MiB': peak, lost: Math.max(0, asked + LEAST_BESIDE[way] - events) };
  } finally {
    removeFolder(folder);
  }
}

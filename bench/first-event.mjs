// Measures the time from a caller's request to the engine's first event at that caller, next to the bare start of the
// engine.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, fdatasyncSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { median, now, share, format } from './lib/figures.mjs';
import { readFrames, readUntil } from './lib/frames.mjs';
import { absent, peer } from './lib/peers.mjs';
import { open } from './lib/open-runs.mjs';
import {
  earlierVersion,
  engineIn,
  newFolder,
  openCodexSdk,
  removeFolder,
  runAcpx,
  startParley,
  startSandboxAgent,
} from './lib/systems.mjs';

const BARE = 'bare start';
const SYNCS = 'two fdatasync';
const STARTS = 10;
const prompt = '[[events 1 64]]';

export default {
  name: 'first-event',
  ids: ['B1'],
  title: 'From the request to the first event of the engine',
  description:
    `Each round has ${STARTS} starts, one after the other. Parley: from \`create\` until the first line of the ` +
    'engine is stored (in-process: the path of the program is configured and there is no private home) or has ' +
    'arrived over HTTP (a whole server, which locates the program and makes a private home); sandbox-agent: from ' +
    'the first request of a new session to the first event of its first turn over HTTP, which takes three ' +
    'requests; acpx: from the start of its command to the first event that it prints, one start per round. The ' +
    'engine is a Node script, and its own start takes most of the time. The row "two fdatasync" appends 4 KiB to a ' +
    'file and syncs it, twice: Parley cannot do with less, because the run and the start of its turn are on disk ' +
    'before the engine starts.',
  figures: {
    'ms p50': { better: 'less' },
    'ms p95': { better: 'less', description: 'of all starts of all rounds' },
    'added ms': { better: 'less', description: 'p50 minus p50 of the bare start in the same round' },
  },
  plots: ['added ms'],
  bounds:
    'The limit over HTTP: before the engine is started, the run and the start of its turn are on disk, so that ' +
    'none is started twice, and about a dozen files and folders exist: its logs, and its private home with the ' +
    'settings for this turn. On this file system a commit takes about 2 ms, and creating a file or folder about ' +
    'half a millisecond.',
  async open() {
    const folders = [newFolder(), newFolder(), newFolder(), newFolder()];
    const engine = engineIn(join(folders[0], 'bin'));
    let onStored = null;
    const inside = await open(join(folders[0], 'inside'), {
      program: [engine],
      onChange: ({ lines }) => lines?.rasp.bytes.includes('lifecycle.session.bound') && onStored?.(),
    });
    const parley = await startParley(folders[1]);
    const earlier = earlierVersion();
    const before = earlier ? await startParley(folders[3], { program: earlier.program }) : null;
    const other = peer('sandbox-agent') ? await startSandboxAgent(folders[2]) : null;
    const sdk = peer('codex-sdk') ? await openCodexSdk(folders[0]) : null;
    let bare = 0;
    let sessions = 0;
    // `once(seen)` runs one start and calls `seen` at each event.
    const system = (who, once, { starts = STARTS, note } = {}) => {
      const all = [];
      return {
        who,
        ...(note === undefined ? {} : { note }),
        round: async () => {
          const times = [];
          for (let start = 0; start < starts; start += 1) times.push(await timeOf(once));
          all.push(...times);
          if (who !== BARE) return { 'ms p50': median(times), 'added ms': median(times) - bare };
          bare = median(times);
          return { 'ms p50': bare };
        },
        after: () => ({ 'ms p95': share(all, 0.95) }),
      };
    };
    return {
      systems: [
        system(BARE, (seen) => startBare(engine, folders[0], seen)),
        {
          who: SYNCS,
          round: () => ({ 'ms p50': median(Array.from({ length: STARTS }, () => syncTwice(folders[0]))) }),
        },
        system('Parley, in the process', async (seen) => {
          onStored = seen;
          const { run_id: runId } = await inside.orchestrator.create({ engine: 'codex', prompt });
          await inside.orchestrator.waitUntilIdle(runId);
        }),
        system('Parley, over HTTP', (seen) => startOver(parley, seen)),
        ...(before ? [system(`Parley, over HTTP, ${earlier.who}`, (seen) => startOver(before, seen))] : []),
        sdk ? system(peer('codex-sdk').name, (seen) => sdk(prompt, () => seen())) : absent('codex-sdk'),
        other
          ? system(peer('sandbox-agent').name, async (seen) => {
              const name = `f${(sessions += 1)}`;
              const session = await other.open(name);
              const reading = readUntil(other.stream(name), '"stopReason"', {
                onFrame: (_id, frame) => frame.includes('agent_message_chunk') && seen(),
              });
              await other.prompt(name, session, prompt);
              await reading.over();
            })
          : absent('sandbox-agent'),
        peer('acpx')
          ? system(
              peer('acpx').name,
              async (seen) => {
                const [first] = await runAcpx(folders[0], ['exec', prompt]);
                if (first !== undefined) seen(first);
              },
              { starts: 1, note: 'one start a round' },
            )
          : absent('acpx'),
      ],
      close: async () => {
        await inside.close();
        await parley.stop();
        await before?.stop();
        await other?.stop();
        folders.forEach(removeFolder);
      },
    };
  },
  aims: (of) => [
    {
      aim: 'at most 10 ms more than the bare start until the first event is stored',
      got: `${format(of('Parley, in the process', 'added ms'))} ms`,
      reached: of('Parley, in the process', 'added ms') <= 10,
    },
    {
      aim: 'at most 10 ms and two fdatasync more until a client has it over HTTP',
      got: `${format(of('Parley, over HTTP', 'added ms'))} ms, two fdatasync take ${format(of(SYNCS, 'ms p50'))} ms`,
      reached: of('Parley, over HTTP', 'added ms') <= 10 + of(SYNCS, 'ms p50'),
    },
    {
      aim: 'not later than sandbox-agent',
      got: `${format(of('Parley, over HTTP', 'ms p50'))} and ${format(of('sandbox-agent', 'ms p50'))} ms`,
      reached: of('Parley, over HTTP', 'ms p50') <= of('sandbox-agent', 'ms p50'),
    },
  ],
};

// A missing event must not count as a fast one.
async function timeOf(once) {
  const begin = now();
  let first = null;
  await once((at = now()) => (first ??= at));
  if (first === null) throw new Error('an event never came');
  return first - begin;
}

function syncTwice(folder) {
  const file = openSync(join(folder, 'synced'), 'a');
  const begin = now();
  for (let times = 0; times < 2; times += 1) {
    writeSync(file, Buffer.alloc(4096));
    fdatasyncSync(file);
  }
  const ms = now() - begin;
  closeSync(file);
  return ms;
}

async function startOver(parley, seen) {
  const { run_id: runId } = await parley.create(prompt);
  await readFrames(`${parley.url}/v1/runs/${runId}/rasp`, {
    headers: parley.headers,
    onFrame: (_id, frame) => frame.includes('lifecycle.session.bound') && seen(),
  });
}

async function startBare(engine, folder, seen) {
  const child = spawn(engine, ['exec', '--json', prompt], {
    stdio: ['ignore', 'pipe', 'ignore'],
    env: { PATH: process.env.PATH, HOME: folder },
  });
  child.stdout.on('data', () => seen());
  await once(child, 'close');
}

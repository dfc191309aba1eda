// Checks that the conversation can be rebuilt from the stored data: the raw logs parse again to the same RASP, and RASP
// folds again to the same FCMP, byte for byte.
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { createTurnParser, findEngine } from '../dist/engines/registry.js';
import { EventBuffer } from '../dist/journal/event-buffer.js';
import { createStamp } from '../dist/rasp/stamp.js';
import { format } from './lib/figures.mjs';
import { readFrames } from './lib/frames.mjs';
import { newFolder, removeFolder, startParley } from './lib/systems.mjs';

const PROGRAM = fileURLToPath(new URL('../bin/parley.js', import.meta.url));
const EVENTS = 20_000;
// The chunk of a pipe, and odd sizes: how the output was cut when it came must not matter.
const CUTS = [1_048_576, 65_536, 997, 61];

export default {
  name: 'replay',
  ids: ['B12'],
  title: `${EVENTS.toLocaleString('en')} events, half of the rounds with broken lines, rebuilt from the stored data`,
  description:
    `The log of the engine is parsed again in chunks of ${CUTS.map((cut) => cut.toLocaleString('en')).join(', ')} ` +
    'bytes and compared with the stored events byte for byte, without seq and time, as sets, because the two ' +
    'streams may have arrived in another order. `parley replay` folds the stored RASP again and compares it with ' +
    'the stored FCMP, byte for byte. None of the other systems measured here has both records.',
  figures: {
    'events compared': { better: null },
    'events differing': { better: 'less', right: 0 },
    'FCMP differing': { better: 'less', right: 0, description: 'conversations' },
  },
  plots: [],
  async open() {
    const folder = newFolder();
    const server = await startParley(folder);
    return {
      systems: [{ who: 'Parley', round: (round) => again(server, round % 2 === 1) }],
      close: async () => {
        await server.stop();
        removeFolder(folder);
      },
    };
  },
  aims: (of) => [
    {
      aim: 'nothing differs',
      got:
        `${format(of('Parley', 'events differing'))} of ${format(of('Parley', 'events compared'))} events, ` +
        `${format(of('Parley', 'FCMP differing'))} of FCMP`,
      reached: of('Parley', 'events differing') === 0 && of('Parley', 'FCMP differing') === 0,
    },
  ],
};

async function again({ create, waitUntilIdle, client, url, headers, data }, dirty) {
  const { run_id: runId } = await create(`[[events ${EVENTS} 64]]${dirty ? ' [[dirty]]' : ''}`);
  const stored = [];
  let version;
  await readFrames(`${url}/v1/runs/${runId}/rasp`, {
    headers,
    onFrame: (_id, frame) => {
      const text = frame.subarray(frame.indexOf('data: ') + 6).toString();
      const event = JSON.parse(text);
      // The text about an unknown line contains the version, if it was known.
      if (event.event.type === 'lifecycle.turn.started') version = event.data.engine_version;
      if (event.source.parser !== 'orchestrator') stored.push(withoutPlace(text));
    },
  });
  await waitUntilIdle(runId);
  const logs = {
    stdout: Buffer.from(await client.logs(runId, { stream: 'stdout' })),
    stderr: Buffer.from(await client.logs(runId, { stream: 'stderr' })),
  };
  const kept = stored.toSorted();
  let differing = 0;
  for (const cut of CUTS) {
    const parser = createTurnParser(findEngine('codex'), version);
    const made = [];
    const stamp = createStamp({ runId, engine: 'codex', attempt: 1 });
    const buffer = new EventBuffer();
    const collect = (drafts) => {
      for (const draft of drafts) {
        stamp(draft, 0, 'then', buffer);
        made.push(withoutPlace(buffer.drain().toString().trimEnd()));
      }
    };
    for (const stream of ['stdout', 'stderr'])
      for (let at = 0; at < logs[stream].length; at += cut)
        collect(parser.push(stream, logs[stream].subarray(at, at + cut)));
    collect(parser.finish());
    // In this case the two streams came in another order.
    const sortedMade = made.toSorted();
    differing +=
      Math.abs(kept.length - sortedMade.length) + kept.filter((text, index) => sortedMade[index] !== text).length;
  }
  let fcmp = 0;
  try {
    execFileSync(process.execPath, [PROGRAM, 'replay', runId, '--data', data], {
      stdio: 'ignore',
      env: { PATH: process.env.PATH, HOME: data },
    });
  } catch {
    fcmp = 1;
  }
  return { 'events compared': kept.length * CUTS.length, 'events differing': differing, 'FCMP differing': fcmp };
}

const withoutPlace = (line) => line.replace(/"seq":\d+,"ts":"[^"]*"/, '');

// A damaged stream: every hundredth line broken, invalid UTF-8, chunks that end within a character, a line of 8 MB,
// noise on stderr.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { sum, format } from './lib/figures.mjs';
import { readFrames, readUntil } from './lib/frames.mjs';
import { absent, peer } from './lib/peers.mjs';
import { newFolder, openCodexSdk, removeFolder, startParley, startSandboxAgent } from './lib/systems.mjs';

const EVENTS = 20_000;
const prompt = `[[events ${EVENTS} 64]] [[dirty]]`;
const GOOD = /^\d{13} 漢+$/;

export default {
  name: 'dirty',
  ids: ['B9'],
  title: `A turn of ${EVENTS.toLocaleString('en')} good lines among broken ones`,
  description:
    'Every hundredth line is broken, some with invalid UTF-8. Chunks end in the middle of characters, one line has ' +
    '8 MB, and stderr has noise. Bytes unaccounted are bytes that the engine printed and no event covers (raw_refs); ' +
    'only Parley records them. The engine pauses after every ten lines, so that the buffer of sandbox-agent (1,024) ' +
    'cannot be the reason for a loss.',
  figures: {
    'turns lost': { better: 'less', right: 0 },
    'good lines lost': { better: 'less', right: 0 },
    'bytes unaccounted': { better: 'less', right: 0 },
  },
  plots: ['good lines lost'],
  async open() {
    const folders = [newFolder(), newFolder(), newFolder()];
    const parley = await startParley(folders[0]);
    const sdk = peer('codex-sdk') ? await openCodexSdk(folders[1]) : null;
    const other = peer('sandbox-agent') ? await startSandboxAgent(folders[2]) : null;
    return {
      systems: [
        { who: 'Parley', round: () => throughParley(parley, join(folders[0], 'printed.json')) },
        sdk ? { who: peer('codex-sdk').name, round: () => throughSdk(sdk) } : absent('codex-sdk'),
        other
          ? {
              who: peer('sandbox-agent').name,
              note: 'one round: it takes two minutes',
              round: (round) => (round === 0 ? throughSandboxAgent(other, 'dirty') : {}),
            }
          : absent('sandbox-agent'),
      ],
      close: async () => {
        await parley.stop();
        await other?.stop();
        folders.forEach(removeFolder);
      },
    };
  },
  aims: (of) => [
    {
      aim: 'no turn, line or byte lost',
      got:
        `${format(of('Parley', 'turns lost'))}, ${format(of('Parley', 'good lines lost'))}, ` +
        `${format(of('Parley', 'bytes unaccounted'))}`,
      reached: ['turns lost', 'good lines lost', 'bytes unaccounted'].every((name) => of('Parley', name) === 0),
    },
  ],
};

async function throughParley({ create, client, url, headers }, count) {
  const { run_id: runId } = await create(`${prompt} [[count ${count}]]`);
  let good = 0;
  const covered = { stdout: [], stderr: [] };
  await readFrames(`${url}/v1/runs/${runId}/rasp`, {
    headers,
    onFrame: (_id, frame) => {
      const event = JSON.parse(frame.subarray(frame.indexOf('data: ') + 6).toString());
      if (event.event.type === 'agent.message.final' && GOOD.test(event.data.text)) good += 1;
      if (event.raw_ref) covered[event.raw_ref.stream].push([event.raw_ref.byte_from, event.raw_ref.byte_to]);
    },
  });
  const { status } = await client.get(runId);
  const printed = JSON.parse(readFileSync(count, 'utf8'));
  const unaccounted = sum(['stdout', 'stderr'].map((stream) => Math.abs(printed[stream] - reach(covered[stream]))));
  return {
    'turns lost': status === 'succeeded' ? 0 : 1,
    'good lines lost': EVENTS - good,
    'bytes unaccounted': unaccounted,
  };
}

// The number of bytes that these ranges cover together.
function reach(ranges) {
  let covered = 0;
  let end = 0;
  for (const [from, to] of ranges.toSorted((a, b) => a[0] - b[0])) {
    covered += Math.max(0, to - Math.max(from, end));
    end = Math.max(end, to);
  }
  return covered;
}

async function throughSdk(turn) {
  let good = 0;
  try {
    await turn(prompt, (event) => {
      if (event.item?.type === 'agent_message' && GOOD.test(event.item.text)) good += 1;
    });
    return { 'turns lost': 0, 'good lines lost': EVENTS - good };
  } catch {
    return { 'turns lost': 1, 'good lines lost': EVENTS - good };
  }
}

async function throughSandboxAgent(server, name) {
  let good = 0;
  const session = await server.open(name);
  const reading = readUntil(server.stream(name), '"stopReason"', {
    onFrame: (_id, frame) => {
      const text = /"text":"([^"]*)"/.exec(frame.toString())?.[1];
      if (text !== undefined && GOOD.test(text)) good += 1;
    },
  });
  const { status } = await server.prompt(name, session, `${prompt} [[pace 10 1]]`);
  await reading.over();
  return { 'turns lost': status < 300 ? 0 : 1, 'good lines lost': EVENTS - good };
}

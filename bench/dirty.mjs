// A stream as bad days make it: every hundredth line broken, bytes that are no UTF-8, a line of 8 MB, noise on stderr.
import { tell } from './lib/figures.mjs';
import { readFrames } from './lib/frames.mjs';
import { peer } from './lib/peers.mjs';
import { newFolder, openCodexSdk, removeFolder, startParley } from './lib/systems.mjs';

const EVENTS = 20_000;
const prompt = `[[events ${EVENTS} 64]] [[dirty]]`;

export default {
  name: 'dirty', ids: ['B9'], title: `A turn of ${EVENTS.toLocaleString('en')} good lines among broken ones`,
  says: 'Bytes unaccounted: what the engine printed less what the raw_refs of its events cover, each byte once; of Parley alone, as others keep no such record.',
  figures: { 'turns lost': { better: 'less' }, 'good lines lost': { better: 'less' }, 'bytes unaccounted': { better: 'less' } },
  plots: ['good lines lost'],
  async open() {
    const folders = [newFolder(), newFolder()];
    const parley = await startParley(folders[0]);
    const sdk = peer('codex-sdk') ? await openCodexSdk(folders[1]) : null;
    return {
      systems: [
        { who: 'Parley', round: () => throughParley(parley) },
        ...(sdk ? [{ who: peer('codex-sdk').name, round: () => throughSdk(sdk) }] : []),
      ],
      close: async () => {
        await parley.stop();
        folders.forEach(removeFolder);
      },
    };
  },
  aims: (of) => [{ aim: 'no turn, no line, no byte', got: `${tell(of('Parley', 'turns lost'))}, ${tell(of('Parley', 'good lines lost'))}, ${tell(of('Parley', 'bytes unaccounted'))}`, reached: ['turns lost', 'good lines lost', 'bytes unaccounted'].every((name) => of('Parley', name) === 0) }],
};

async function throughParley({ create, client, url, headers }) {
  const { run_id: runId } = await create(prompt);
  let good = 0;
  const covered = { stdout: [], stderr: [] };
  await readFrames(`${url}/v1/runs/${runId}/rasp`, { headers, onFrame: (_id, frame) => {
    const event = JSON.parse(frame.subarray(frame.indexOf('data: ') + 6).toString());
    if (event.event.type === 'agent.message.final' && /^\d{13} x+$/.test(event.data.text)) good += 1;
    if (event.raw_ref) covered[event.raw_ref.stream].push([event.raw_ref.byte_from, event.raw_ref.byte_to]);
  } });
  const { status } = await client.get(runId);
  let unaccounted = 0;
  for (const stream of ['stdout', 'stderr']) unaccounted += (await client.logs(runId, { stream })).length - reach(covered[stream]);
  return { 'turns lost': status === 'succeeded' ? 0 : 1, 'good lines lost': EVENTS - good, 'bytes unaccounted': unaccounted };
}

// How many bytes these ranges cover together.
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
      if (event.item?.type === 'agent_message' && /^\d{13} x+$/.test(event.item.text)) good += 1;
    });
    return { 'turns lost': 0, 'good lines lost': EVENTS - good };
  } catch {
    return { 'turns lost': 1, 'good lines lost': EVENTS - good };
  }
}

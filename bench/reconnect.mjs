// A reader that reconnects with the number of its last event: how much of the missed events it receives, and how soon.
import { Agent } from 'node:http';
import { now, format } from './lib/figures.mjs';
import { lossOf, readFrames, readUntil } from './lib/frames.mjs';
import { absent, peer } from './lib/peers.mjs';
import { newFolder, removeFolder, startParley, startSandboxAgent } from './lib/systems.mjs';

const EVENTS = 100_000;
const KNOWN = 100;
const LATE = 99_000;
const prompt = `[[events ${EVENTS} 64]]`;

export default {
  name: 'reconnect',
  ids: ['B5'],
  title: `A reader reconnects after ${KNOWN} of ${EVENTS.toLocaleString('en')} events`,
  description:
    `Last-Event-ID ${KNOWN}, after the turn has ended; for Parley also ${LATE.toLocaleString('en')}, to show that ` +
    'a late position is found as fast as an early one.',
  figures: {
    'replayed %': { better: 'more', right: 100 },
    lost: { better: 'less', right: 0 },
    twice: { better: 'less', right: 0 },
    'ms to first': { better: 'less' },
    'ms to caught up': { better: 'less' },
    'ms to first, late': { better: 'less', description: `after event ${LATE.toLocaleString('en')}` },
  },
  plots: ['replayed %'],
  async open() {
    const folders = [newFolder(), newFolder()];
    const parley = await startParley(folders[0]);
    const { run_id: runId } = await parley.create(prompt);
    const { last } = await readFrames(`${parley.url}/v1/runs/${runId}/rasp`, { headers: parley.headers, after: 0 });
    await parley.waitUntilIdle(runId);
    const other = peer('sandbox-agent') ? await startSandboxAgent(folders[1]) : null;
    if (other) await other.prompt('back', await other.open('back'), prompt);
    const agent = new Agent({ keepAlive: true });
    const back = async (cursor) => {
      const begin = now();
      let first = 0;
      const read = await readFrames(`${parley.url}/v1/runs/${runId}/rasp`, {
        headers: { ...parley.headers, 'last-event-id': String(cursor) },
        agent,
        after: cursor,
        onFrame: () => void (first ||= now() - begin),
      });
      return { ...figuresOf(read, last - cursor), first, all: now() - begin };
    };
    return {
      systems: [
        {
          who: 'Parley',
          round: async (round) => {
            // Uses another run each time, so that none is still in memory.
            const { first, all, ...figures } = await back(KNOWN + round);
            const late = await back(LATE + round);
            if (late.lost > 0) throw new Error(`${late.lost} events after ${LATE + round} are lost`);
            return { ...figures, 'ms to first': first, 'ms to caught up': all, 'ms to first, late': late.first };
          },
        },
        other
          ? {
              who: peer('sandbox-agent').name,
              round: async () => {
                const begin = now();
                let first = 0;
                let latest = 0;
                const reading = readUntil(other.stream('back'), 'none of these', {
                  headers: { 'last-event-id': String(KNOWN) },
                  after: KNOWN,
                  onFrame: () => {
                    latest = now() - begin;
                    first ||= latest;
                  },
                });
                const read = await reading.over();
                // Two responses, the events, and the end of the turn.
                return { ...figuresOf(read, EVENTS + 3 - KNOWN), 'ms to first': first, 'ms to caught up': latest };
              },
            }
          : absent('sandbox-agent'),
      ],
      close: async () => {
        agent.destroy();
        await parley.stop();
        await other?.stop();
        folders.forEach(removeFolder);
      },
    };
  },
  aims: (of) => [
    {
      aim: 'everything is replayed, the first event within 20 ms',
      got:
        `${format(of('Parley', 'replayed %'))} %, ${format(of('Parley', 'twice'))} twice, ` +
        `${format(of('Parley', 'ms to first'))} ms early, ${format(of('Parley', 'ms to first, late'))} ms late`,
      reached:
        of('Parley', 'lost') === 0 &&
        of('Parley', 'twice') === 0 &&
        of('Parley', 'ms to first') < 20 &&
        of('Parley', 'ms to first, late') < 20,
    },
  ],
};

function figuresOf(read, missed) {
  return { 'replayed %': (100 * read.frames) / missed, ...lossOf(read, read.frames, missed) };
}

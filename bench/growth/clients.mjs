// How costs grow with the number of clients that read one run: what the server needs to deliver an event.
import { Agent } from 'node:http';
import { format } from '../lib/figures.mjs';
import { read, startSseServer } from '../sse.mjs';

const STORED = 1000;
// Few clients read more events, so that the processor time can be measured.
const DELIVERIES = 100_000;
const LEAST_EVENTS = 500;
const TICKS = 30;
const BURST = 'burst: CPU for each delivered event';
const SLOW = 'ten events every tenth of a second: CPU for each delivered event';
const LATER = 'burst: CPU for each delivered event, without that of the run itself';

export default {
  name: 'growth-clients',
  of: 'clients',
  title: 'Clients that read one run',
  description:
    'Readers on raw sockets of one run, in another process. The server also runs, stores and sends the run; a run ' +
    'with as many events and no reader is subtracted for the row "without that of the run itself". In a burst the ' +
    'engine prints as fast as it can.',
  sizes: [1, 10, 100, 1000],
  onceSizes: [1, 20],
  plots: [{ title: 'CPU for each delivered event', unit: 'µs', rows: [BURST, LATER, SLOW] }],
  open: async () => {
    const server = await startSseServer(STORED);
    return { ...server, close: () => server.end().finally(server.close) };
  },
  measure: async ({ size, record, context }) => {
    const events = Math.max(LEAST_EVENTS, Math.round(DELIVERIES / size));
    const directives = `[[events ${events} 200]]`;
    const none = await play(context, { clients: 0, directives });
    const burst = await play(context, { clients: size, directives });
    record(BURST, { unit: 'µs', values: [burst.cpu / burst.delivered], stall: burst.stall });
    const more = Math.max(0, burst.cpu - none.cpu);
    record(LATER, { unit: 'µs', values: [more / burst.delivered] });
    const slow = await play(context, { clients: size, directives: '[[events 10 200]][[sleep 100]]'.repeat(TICKS) });
    record(SLOW, { unit: 'µs', values: [slow.cpu / slow.delivered], stall: slow.stall });
  },
  aims: (of) => [
    {
      aim: 'an event costs no more for each client when there are more of them (exponent at most 0.2)',
      got: `exponent ${format(of(BURST, 'exponent'))}`,
      reached: of(BURST, 'exponent') <= 0.2,
    },
  ],
};

// One run that prints by these directives while the clients read; all have everything at the end.
async function play({ url, request }, { clients, directives }) {
  const { runId, events: before } = await request('ask');
  const agent = new Agent({ maxSockets: Infinity });
  const waiting = [];
  const readers = Array.from({ length: clients }, () => {
    let onFirst;
    waiting.push(new Promise((resolve) => (onFirst = resolve)));
    return read(`${url}/v1/runs/${runId}/rasp`, { agent, onFirst });
  });
  // A reader that fails is reported instead of waited for.
  await Promise.race([Promise.all(waiting), Promise.all(readers).then(() => Promise.all(waiting))]);
  await request('mark');
  const { events } = await request('play', { runId, directives });
  const lasts = await Promise.all(readers);
  const { cpu, stall } = await request('cost');
  agent.destroy();
  if (lasts.some((last) => last !== events)) throw new Error('a reader has not received everything');
  return { cpu, stall, delivered: (events - before) * Math.max(1, clients) };
}

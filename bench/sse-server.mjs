// A server with one run of many stored events, in a separate process: serves until it receives the signal to stop, and
// reports its cost.
import { createServer } from 'node:http';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { openService } from './lib/open-service.mjs';
import { open } from './lib/open-runs.mjs';

const [dir, events, token] = process.argv.slice(2);
const bench = await open(dir);
const { run_id: runId } = await bench.orchestrator.create({ engine: 'codex', prompt: `[[events ${events} 200]]` });
const run = await bench.orchestrator.waitUntilIdle(runId);
const service = await openService({ data: bench.data, orchestrator: bench.orchestrator, token, root: dir });

// The bare limit: the same bytes from memory, in the same chunks.
const pieces = [];
{
  const lines = await bench.data.store.readJournal(runId, 'rasp', { limit: Number.MAX_SAFE_INTEGER });
  let piece = '';
  for (const [index, line] of lines.entries()) {
    piece += `id: ${index + 1}\ndata: ${line}\n\n`;
    if (piece.length < 64 * 1024 && index < lines.length - 1) continue;
    pieces.push(Buffer.from(piece));
    piece = '';
  }
}
const bare = createServer(async (_request, response) => {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (const piece of pieces)
    if (!response.write(piece)) await new Promise((resolve) => response.once('drain', resolve));
  response.end('event: end\ndata: {}\n\n');
}).listen(0, '127.0.0.1', () =>
  process.send({
    url: service.url,
    bare: `http://127.0.0.1:${bare.address().port}`,
    runId,
    events: run.heads.rasp_seq,
    bytes: pieces.reduce((sum, { length }) => sum + length, 0),
  }),
);

const STEP_MS = 5;
const delays = monitorEventLoopDelay({ resolution: STEP_MS });
delays.enable();
let cpu = process.cpuUsage();
const orders = {
  mark: () => {
    cpu = process.cpuUsage();
    delays.reset();
    return {};
  },
  cost: () => {
    const { user, system } = process.cpuUsage(cpu);
    const stall = Math.max(0, delays.max / 1e6 - STEP_MS);
    return { cpu: user + system, rss: process.memoryUsage().rss, stall };
  },
  ask: async () => {
    const { run_id: id } = await bench.orchestrator.create({
      engine: 'codex',
      prompt: '[[ask Go on?|yes]]',
      execution_mode: 'interactive',
      permission: 'full',
    });
    const { heads } = await bench.orchestrator.waitUntilIdle(id);
    return { runId: id, events: heads.rasp_seq };
  },
  // Answers the question of the run with these directives.
  play: async ({ runId: id, directives }) => {
    const { interaction_id: interaction } = await bench.data.store.loadPendingInteraction(id);
    await bench.orchestrator.reply(id, { interaction_id: interaction, response: `${directives} [[done {}]]` });
    return { events: (await bench.orchestrator.waitUntilIdle(id)).heads.rasp_seq };
  },
  end: async () => {
    bare.close();
    await service.close();
    await bench.close();
    setImmediate(() => process.disconnect());
    return {};
  },
};
process.on('message', async ({ order, ...rest }) => process.send(await orders[order](rest)));

// A server with one run of many stored events, in a separate process: serves until it receives the signal to stop, and
// reports its cost.
import { createServer } from 'node:http';
import { pino } from 'pino';
import { systemClock } from '../dist/kernel/clock.js';
import { systemTimers } from '../dist/process/timers.js';
import { createService, DEFAULT_LIMITS } from '../dist/service/service.js';
import { fixedOperator } from '../dist/service/access/operator-token.js';
import { TokenBook } from '../dist/service/access/token-book.js';
import { tokensIn } from '../dist/service/access/tokens.js';
import { open } from './lib/open-runs.mjs';

const [dir, events, token] = process.argv.slice(2);
const bench = await open(dir);
const { run_id: runId } = await bench.orchestrator.create({ engine: 'codex', prompt: `[[events ${events} 200]]` });
const run = await bench.orchestrator.waitUntilIdle(runId);
const hosts = new Set();
const service = await createService({
  store: bench.data.store,
  orchestrator: bench.orchestrator,
  clock: systemClock,
  timers: systemTimers,
  dataDir: bench.data.path,
  version: 'bench',
  tokens: new TokenBook({
    source: tokensIn(bench.data.path),
    operator: fixedOperator(token),
    userName: 'bench',
    clock: systemClock,
  }),
  access: bench.data.access,
  baseUrl: () => '',
  log: pino({ level: 'silent' }),
  engines: async () => [],
  limits: DEFAULT_LIMITS,
  workspaceRoots: () => [dir],
  hosts: () => hosts,
});
await service.app.listen({ host: '127.0.0.1', port: 0 });
const { port } = service.app.server.address();
hosts.add(`127.0.0.1:${port}`);

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
    url: `http://127.0.0.1:${port}`,
    bare: `http://127.0.0.1:${bare.address().port}`,
    runId,
    events: run.heads.rasp_seq,
    bytes: pieces.reduce((sum, { length }) => sum + length, 0),
  }),
);

let cpu = process.cpuUsage();
const orders = {
  mark: () => {
    cpu = process.cpuUsage();
    return {};
  },
  cost: () => {
    const { user, system } = process.cpuUsage(cpu);
    return { cpu: user + system, rss: process.memoryUsage().rss };
  },
  ask: async () => {
    const { run_id: id } = await bench.orchestrator.create({
      engine: 'codex',
      prompt: '[[ask Go on?|yes]]',
      execution_mode: 'interactive',
      permission: 'full',
    });
    await bench.orchestrator.waitUntilIdle(id);
    return { runId: id };
  },
  burst: async ({ runId: id, count }) => {
    const { interaction_id: interaction } = await bench.data.store.loadPendingInteraction(id);
    await bench.orchestrator.reply(id, {
      interaction_id: interaction,
      response: `[[events ${count} 200]] [[done {}]]`,
    });
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

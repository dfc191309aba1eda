// Passes one turn of the engine to a consumer in this process and reports the cost. Each consumer has its own process,
// so that none warms up another. Arguments: the consumer, a folder, the number of events, their size.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { acpSdk } from './peers.mjs';
import { engineIn, openCodexSdk } from './systems.mjs';
import { now } from './figures.mjs';

const [consumer, folder, count, bytes] = process.argv.slice(2);
const prompt = `[[events ${count} ${bytes}]]`;
const engine = engineIn(join(folder, 'bin'), { pinned: true });
let first = 0;
let startedAt = null;
let messages = 0;
const MESSAGE = 'agent.message.final';
const STORED = Buffer.from(`"${MESSAGE}"`);

function took() {
  if (first === 0) {
    first = now();
    startedAt = process.cpuUsage();
  }
}

function codex() {
  return spawn(engine, ['exec', '--json', '--skip-git-repo-check', '-C', folder, prompt], {
    stdio: ['ignore', 'pipe', 'ignore'],
    env: { PATH: process.env.PATH, HOME: folder },
  });
}

const CONSUMERS = {
  // The minimum for any reader of such a stream.
  bare: async () => {
    const child = codex();
    let carry = '';
    child.stdout.setEncoding('utf8').on('data', (chunk) => {
      took();
      const lines = (carry + chunk).split('\n');
      carry = lines.pop();
      for (const line of lines) if (JSON.parse(line).type === 'item.completed') messages += 1;
    });
    await once(child, 'close');
  },
  'codex-sdk': async () => {
    const turn = await openCodexSdk(folder, { pinned: true });
    await turn(prompt, ({ type }) => {
      took();
      if (type === 'item.completed') messages += 1;
    });
  },
  'acp-sdk': async () => {
    const { ClientSideConnection, ndJsonStream } = await import(acpSdk().path);
    const child = spawn(engine, [], { stdio: ['pipe', 'pipe', 'ignore'] });
    const connection = new ClientSideConnection(
      () => ({
        sessionUpdate: async () => {
          took();
          messages += 1;
        },
      }),
      ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout)),
    );
    await connection.initialize({ protocolVersion: 1, clientCapabilities: {} });
    const { sessionId } = await connection.newSession({ cwd: folder, mcpServers: [] });
    await connection.prompt({ sessionId, prompt: [{ type: 'text', text: prompt }] });
    child.stdin.end();
  },
  // The same bytes through the parser, to RASP text with envelope and raw_ref; not stored.
  parser: async () => {
    const { createTurnParser, findEngine } = await import('../../dist/engines/registry.js');
    const { createStamp } = await import('../../dist/rasp/stamp.js');
    const { EventBuffer } = await import('../../dist/journal/event-buffer.js');
    const parser = createTurnParser(findEngine('codex'));
    const stamp = createStamp({ runId: 'run_01HZZZZZZZZZZZZZZZZZZZZZZZ', engine: 'codex', attempt: 1 });
    const buffer = new EventBuffer();
    let seq = 0;
    const write = (drafts) => {
      const ts = new Date().toISOString();
      for (const draft of drafts) {
        stamp(draft, (seq += 1), ts, buffer);
        if (draft.type === MESSAGE) messages += 1;
      }
      if (drafts.length > 0) buffer.drain();
    };
    const child = codex();
    child.stdout.on('data', (chunk) => {
      took();
      write(parser.push('stdout', chunk));
    });
    await once(child, 'close');
    write(parser.finish());
  },
  // All of Parley: parsed, stored as RASP and FCMP with its digests, the log on disk.
  parley: async () => {
    const { open } = await import('./open-runs.mjs');
    // Starts at the first output of the engine, when the other consumers start to count.
    const bench = await open(folder, {
      program: [engine],
      onAsked: ({ lines }) => {
        if (first === 0 && lines?.rasp.bytes.includes('"stdout"')) took();
      },
      onChange: ({ lines }) => {
        for (let at = lines?.rasp.bytes.indexOf(STORED) ?? -1; at >= 0; at = lines.rasp.bytes.indexOf(STORED, at + 1))
          messages += 1;
      },
    });
    const { run_id: runId } = await bench.orchestrator.create({ engine: 'codex', prompt });
    await bench.orchestrator.waitUntilIdle(runId);
    return bench.close;
  },
};

const finish = await CONSUMERS[consumer]();
const ms = now() - first;
const { user, system } = process.cpuUsage(startedAt);
const peak = process.resourceUsage().maxRSS / 1024;
await finish?.();
console.log(JSON.stringify({ messages, ms, cpu: user + system, peak }));
process.exit(0);

// How long it takes from the wish to the first event of the engine at whoever wished, beside the bare start of the engine.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { median, now, share, tell } from './lib/figures.mjs';
import { readFrames } from './lib/frames.mjs';
import { newerNode, peer } from './lib/peers.mjs';
import { open } from './lib/open-runs.mjs';
import { engineIn, newFolder, openCodexSdk, removeFolder, startParley, startSandboxAgent } from './lib/systems.mjs';

const STARTS = 10;
const prompt = '[[events 1 64]]';

export default {
  name: 'first-event', ids: ['B1'], title: 'From the wish to the first event of the engine',
  says: `Each round ${STARTS} starts one after the other. Parley: from \`create\` until the first line of the engine is stored (in the process) or has come over HTTP; sandbox-agent: from the first request of a new session to the first event of its first turn over HTTP, which takes three requests; acpx: a whole command, one start a round. The engine is a script in Node, and its own start is most of it.`,
  figures: { 'ms p50': { better: 'less' }, 'ms p95': { better: 'less' }, 'added ms': { better: 'less', says: 'p50 less that of the bare start in the same round' } },
  plots: ['added ms'],
  async open() {
    const folders = [newFolder(), newFolder(), newFolder()];
    const engine = engineIn(join(folders[0], 'bin'));
    let onStored = null;
    const inside = await open(join(folders[0], 'inside'), { program: [engine], onChange: ({ journal }) => journal?.rasp.bytes.includes('lifecycle.session.bound') && onStored?.() });
    const parley = await startParley(folders[1]);
    const other = peer('sandbox-agent') ? await startSandboxAgent(folders[2]) : null;
    const sdk = peer('codex-sdk') ? await openCodexSdk(folders[0]) : null;
    let bare = 0;
    let sessions = 0;
    const round = async (once) => {
      const times = [];
      for (let start = 0; start < STARTS; start += 1) times.push(await once());
      return figuresOf(times);
    };
    const figuresOf = (times) => ({ 'ms p50': median(times), 'ms p95': share(times, 0.95), 'added ms': median(times) - bare });
    return {
      systems: [
        { who: 'bare start', round: async () => {
          const { 'ms p50': p50, 'ms p95': p95 } = await round(() => startBare(engine, folders[0]));
          bare = p50;
          return { 'ms p50': p50, 'ms p95': p95 };
        } },
        { who: 'Parley, in the process', round: () => round(async () => {
          const begin = now();
          const stored = new Promise((resolve) => (onStored = resolve));
          const { run_id: runId } = await inside.orchestrator.create({ engine: 'codex', prompt });
          await stored;
          const ms = now() - begin;
          await inside.orchestrator.settled(runId);
          return ms;
        }) },
        { who: 'Parley, over HTTP', round: () => round(async () => {
          const begin = now();
          let ms = 0;
          const { run_id: runId } = await parley.create(prompt);
          await readFrames(`${parley.url}/v1/runs/${runId}/rasp`, { headers: parley.headers, onFrame: (_id, frame) => {
            if (ms === 0 && frame.includes('lifecycle.session.bound')) ms = now() - begin;
          } });
          return ms;
        }) },
        ...(sdk ? [{ who: peer('codex-sdk').name, round: () => round(async () => {
          const begin = now();
          let ms = 0;
          await sdk(prompt, () => (ms ||= now() - begin));
          return ms;
        }) }] : []),
        ...(other ? [{ who: peer('sandbox-agent').name, round: () => round(async () => {
          const name = `f${(sessions += 1)}`;
          const begin = now();
          const session = await other.open(name);
          const first = readFrames(other.stream(name), { onFrame: (_id, frame) => frame.includes('agent_message_chunk') });
          const turn = other.prompt(name, session, prompt);
          await first;
          const ms = now() - begin;
          await turn;
          return ms;
        }) }] : []),
        ...(peer('acpx') ? [{ who: peer('acpx').name, round: async () => {
          const begin = now();
          execFileSync(newerNode(), [peer('acpx').path, '--agent', engine, '--cwd', folders[0], '--format', 'json', 'exec', prompt], { stdio: ['ignore', 'ignore', 'ignore'], env: { PATH: process.env.PATH, HOME: folders[0] } });
          return figuresOf([now() - begin]);
        } }] : []),
      ],
      close: async () => {
        await inside.close();
        await parley.stop();
        await other?.stop();
        folders.forEach(removeFolder);
      },
    };
  },
  aims: (of) => [
    { aim: 'at most 10 ms more than the bare start until the first event is stored', got: `${tell(of('Parley, in the process', 'added ms'))} ms`, reached: of('Parley, in the process', 'added ms') <= 10 },
    { aim: 'the same until a client has it over HTTP', got: `${tell(of('Parley, over HTTP', 'added ms'))} ms`, reached: of('Parley, over HTTP', 'added ms') <= 10 },
  ],
};

async function startBare(engine, folder) {
  const begin = now();
  const child = spawn(engine, ['exec', '--json', prompt], { stdio: ['ignore', 'pipe', 'ignore'], env: { PATH: process.env.PATH, HOME: folder } });
  await once(child.stdout, 'data');
  const ms = now() - begin;
  child.stdout.resume();
  await once(child, 'close');
  return ms;
}

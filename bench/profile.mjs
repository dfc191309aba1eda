// Where the time of the server goes while it streams: a profile, added up by the rooms of the house.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readFrames } from './lib/frames.mjs';
import { newFolder, pinMyself, removeFolder, startParley } from './lib/systems.mjs';

const EVENTS = 100_000;
const TURNS = 4;

const ROOMS = {
  'understanding (engines, rasp)': /\/dist\/(engines|rasp|kernel|contract)\//,
  'conversation (fcmp)': /\/dist\/fcmp\//,
  'log of the engine (process)': /\/dist\/process\//,
  'gathering (orchestrator)': /\/dist\/orchestrator\//,
  'storing (store)': /\/dist\/store\//,
  'sending (service)': /\/dist\/service\//,
};
// Functions that load modules or compile schemas.
const STARTING = new Set([
  'evaluate',
  'compile',
  'compileSchema',
  'cjsLoader',
  'serveCommand',
  'compileSourceTextModule',
  'compileFunctionForCJSLoader',
]);
const OTHER = 'Node itself: streams, HTTP, promises';
const GARBAGE = 'collecting garbage';
const DISK = 'storing: BEGIN and COMMIT, with the wait for the disk';

export default {
  name: 'profile',
  ids: [],
  title: `Where the time goes in \`stream\`: ${TURNS} turns of ${EVENTS.toLocaleString('en')} events`,
  says:
    'Samples of the main thread of the server, given to the room of the house (ARCHITECTURE.md) whose ' +
    'function was nearest; starting up is left out. Writes of the database wait for the disk here: they are ' +
    'time, not work.',
  pinned: 'The server has a core of its own, engine and client share the other.',
  figures: {
    'µs/event': { better: 'less' },
    '%': { better: null, says: 'of the time in which it did not wait for work' },
  },
  plots: ['µs/event'],
  rounds: 1,
  async open() {
    const parts = await sample();
    const all = [...parts.values()].reduce((sum, value) => sum + value, 0);
    const systems = [...parts]
      .toSorted((a, b) => b[1] - a[1])
      .map(([who, us]) => ({ who, round: () => ({ 'µs/event': us / (EVENTS * TURNS), '%': (100 * us) / all }) }));
    return { systems, close: async () => {} };
  },
};

async function sample() {
  const folder = newFolder();
  const profiles = join(folder, 'profiles');
  pinMyself();
  const server = await startParley(folder, { pinned: true, profiles });
  for (let turn = 0; turn < TURNS; turn += 1) {
    const { run_id: runId } = await server.create(`[[events ${EVENTS} 64]]`);
    await readFrames(`${server.url}/v1/runs/${runId}/rasp`, { headers: server.headers });
  }
  await server.stop();
  const [file] = readdirSync(profiles);
  const profile = JSON.parse(readFileSync(join(profiles, file), 'utf8'));
  removeFolder(folder);
  return addUp(profile);
}

function addUp({ nodes, samples, timeDeltas }) {
  const parents = new Map(nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id])));
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const kinds = new Map();
  const kindOf = (id) => {
    if (id === undefined) return OTHER;
    if (!kinds.has(id)) kinds.set(id, judge(byId.get(id).callFrame) ?? kindOf(parents.get(id)));
    return kinds.get(id);
  };
  const parts = new Map();
  for (const [index, id] of samples.entries()) {
    const kind = kindOf(id);
    if (kind !== null) parts.set(kind, (parts.get(kind) ?? 0) + timeDeltas[index]);
  }
  parts.delete('starting');
  return parts;
}

// Undefined: classified by its caller.
function judge({ functionName, url }) {
  if (functionName === '(idle)') return 'starting';
  if (functionName === '(program)') return OTHER;
  if (functionName === '(garbage collector)') return GARBAGE;
  if (functionName === '#write' && url.endsWith('/store/sqlite/writes.js')) return DISK;
  // Modules that are loaded, schemas that are compiled.
  if (STARTING.has(functionName) || /loader|module_job|resolve/.test(url) || url.includes('/ajv/')) return 'starting';
  return Object.keys(ROOMS).find((room) => ROOMS[room].test(url));
}

// A profile of the server while it streams, added up by folder of the source.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readFrames } from './lib/frames.mjs';
import { newFolder, pinMyself, removeFolder, startParley } from './lib/systems.mjs';

const EVENTS = 100_000;
const TURNS = 4;

const FOLDERS = {
  'parsing (engines, rasp)': /\/dist\/(engines|rasp|kernel|contract)\//,
  'conversation (fcmp)': /\/dist\/fcmp\//,
  'log of the engine (process)': /\/dist\/process\//,
  'turns and journal (orchestrator, turn, journal)': /\/dist\/(orchestrator|turn|journal|dispatch)\//,
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
const GARBAGE = 'garbage collection';
const DISK = 'storing: BEGIN and COMMIT, including the wait for the disk';

export default {
  name: 'profile',
  ids: [],
  title: `Where the time goes in \`stream\`: ${TURNS} turns of ${EVENTS.toLocaleString('en')} events`,
  description:
    'Samples of the main thread of the server, assigned to the folder (ARCHITECTURE.md) of the nearest function; ' +
    'start-up is left out. Database writes wait for the disk here: they are time, not work.',
  pinned: 'The server has its own core; engine and client share the other.',
  figures: {
    'µs/event': { better: 'less' },
    '%': { better: null, description: 'of the time in which it did not wait for work' },
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

// Returns undefined for a function that is classified by its caller.
function judge({ functionName, url }) {
  if (functionName === '(idle)') return 'starting';
  if (functionName === '(program)') return OTHER;
  if (functionName === '(garbage collector)') return GARBAGE;
  if (functionName === '#write' && url.endsWith('/store/sqlite/commits/writes.js')) return DISK;
  // Loading of modules and compiling of schemas.
  if (STARTING.has(functionName) || /loader|module_job|resolve/.test(url) || url.includes('/ajv/')) return 'starting';
  return Object.keys(FOLDERS).find((folder) => FOLDERS[folder].test(url));
}

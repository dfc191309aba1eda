// How costs grow with the number of runs that wait for a person: reading the inbox, and starting a server again.
import { Agent } from 'node:http';
import { join } from 'node:path';
import { openDataDir } from '../../dist/store/sqlite/data-dir.js';
import { openDatabase } from '../../dist/store/sqlite/open-database.js';
import { grown, writtenOf } from '../lib/cost.mjs';
import { fillWaiting } from '../lib/fill-waiting-runs.mjs';
import { format } from '../lib/figures.mjs';
import { readResponse } from '../lib/open-service.mjs';
import { startMeasured, untilQuiet } from '../lib/restarts.mjs';
import { timeEach, watchEach } from '../lib/stalls.mjs';
import { newFolder, removeFolder } from '../lib/systems.mjs';

const REPETITIONS = 20;
const STARTS = 3;
const PAGE = 50;
const WALK = 500;
const AIM_QUESTIONS = 10_000;
const LISTENS = 'start: until it listens';

export default {
  name: 'growth-questions',
  of: 'questions',
  title: 'Runs that wait for a person',
  description:
    'Waiting runs, written through the store. The server is killed with SIGKILL and started again; it listens when ' +
    '`GET /healthz` succeeds for the first time, and all runs are checked when it does nothing any more. "Written" ' +
    'is write_bytes of /proc/PID/io, from its start until then. The next decision is that of questions which Parley ' +
    'decides when nobody answers.',
  sizes: [100, 1000, 10_000],
  onceSizes: [50, 200],
  plots: [
    {
      title: 'Waiting runs',
      unit: 'ms',
      rows: [LISTENS, 'start: until all runs are checked', 'inbox page', 'inbox page, late cursor', 'next decision'],
    },
  ],
  measure: async ({ size, record, isOnce }) => {
    const folder = newFolder();
    try {
      await fillWaiting(folder, size);
      const server = await measureStarts(folder, { size, record, starts: isOnce ? 1 : STARTS });
      await measureInbox(server, size, record);
      await server.stop();
      await measureDecisions(join(folder, 'data'), record);
    } finally {
      removeFolder(folder);
    }
  },
  aims: (of) => [
    {
      aim: 'a server with 10,000 waiting runs listens within a second, and checks them without a stall of 50 ms',
      got:
        `${format(of(LISTENS, 'median', AIM_QUESTIONS))} ms, ` +
        `${format(of('start: until all runs are checked', 'stall', AIM_QUESTIONS))} ms`,
      reached:
        of(LISTENS, 'median', AIM_QUESTIONS) < 1000 &&
        of('start: until all runs are checked', 'stall', AIM_QUESTIONS) <= 50,
    },
  ],
};

// Leaves the last server running.
async function measureStarts(folder, { size, record, starts }) {
  const times = { listening: [], checked: [], written: [] };
  let stall = 0;
  let server = null;
  for (let start = 0; start < starts; start += 1) {
    await server?.kill();
    server = await startMeasured(folder);
    // What it did before it listened made nobody wait.
    await server.stall();
    times.listening.push(server.listening);
    times.checked.push(await untilQuiet(server));
    stall = Math.max(stall, await server.stall());
    times.written.push(grown(0, writtenOf(server.pid), size));
  }
  record(LISTENS, { values: times.listening });
  record('start: until all runs are checked', { values: times.checked, stall });
  if (!times.written.includes(null))
    record('start: written for each waiting run', { unit: 'bytes', values: times.written });
  return server;
}

async function measureInbox({ client, url, headers, stall }, size, record) {
  const last = await lateCursor(client, size);
  const measure = async (name, count, work) => {
    await stall();
    const values = await timeEach(count, work);
    record(name, { values, stall: await stall() });
  };
  await measure('inbox page', REPETITIONS, () => client.inbox({ limit: PAGE }));
  await measure('inbox page, late cursor', REPETITIONS, () => client.inbox({ limit: PAGE, cursor: last }));
  const agent = new Agent({ keepAlive: false });
  const read = () => readResponse(`${url}/v1/interactions/events`, { headers, agent, until: 'event: ready' });
  await measure('inbox stream until it is ready', STARTS, read);
}

// Also checks that every question is there: the last page begins after this one.
async function lateCursor(client, size) {
  const ids = [];
  for (let cursor; ;) {
    const page = await client.inbox({ limit: WALK, ...(cursor ? { cursor } : {}) });
    ids.push(...page.interactions.map(({ interaction_id: id }) => id));
    cursor = page.next_cursor;
    if (!cursor) break;
  }
  if (ids.length !== size) throw new Error(`the inbox lists ${ids.length} of ${size} questions`);
  return ids[Math.max(0, ids.length - PAGE - 1)];
}

// Of questions that Parley decides, in a year.
async function measureDecisions(path, record) {
  const db = await openDatabase(join(path, 'parley.db'));
  db.exec(`UPDATE interactions SET decides = 1, due_at = due_at + 31536000000 WHERE state = 'pending'`);
  db.close();
  const data = await openDataDir(path, { pid: process.pid });
  try {
    const decide = async () => {
      if ((await data.store.nextDecision()) === null) throw new Error('there is no next decision');
    };
    record('next decision', await watchEach(REPETITIONS, decide));
  } finally {
    await data.close();
  }
}

// The data that the previous version left on a disk and in a PostgreSQL database when it was killed while working: runs
// in each state, some of them waiting. scripts/make-upgrade-fixtures.mjs explains how it was made.
import { createHash, createHmac } from 'node:crypto';
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect } from 'vitest';
import { openDatabase } from '../../src/store/sqlite/open-database.js';
import type { Site } from './command.js';
import type { ServerProcess } from './served-process.js';

const FOLDER = new URL('../old-databases/upgrade/', import.meta.url).pathname;
// The folder in which it was made.
const MADE_IN = '/tmp/parley-old';

// The sessions and logs of the runs.
function putFiles({ root, data }: Site, name: string): void {
  mkdirSync(join(root, 'folder'), { recursive: true });
  const files = JSON.parse(readFileSync(join(FOLDER, name), 'utf8')) as Record<string, string>;
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(data, 'runs', path)), { recursive: true, mode: 0o700 });
    writeFileSync(join(data, 'runs', path), text.replaceAll(MADE_IN, root));
  }
}

export async function putOldData(site: Site): Promise<void> {
  mkdirSync(site.data, { recursive: true, mode: 0o700 });
  copyFileSync(join(FOLDER, 'sqlite.db'), join(site.data, 'parley.db'));
  const db = await openDatabase(join(site.data, 'parley.db'));
  db.prepare('UPDATE runs SET spec_json = replace(spec_json, ?, ?)').run(MADE_IN, site.root);
  db.prepare('UPDATE request_interactive_runtime SET session_handle_json = replace(session_handle_json, ?, ?)').run(
    MADE_IN,
    site.root,
  );
  db.close();
  putFiles(site, 'sqlite-files.json');
}

// The statements that make the old database; its files are put into the site.
export function putOldDatabase(site: Site): string {
  mkdirSync(site.data, { recursive: true, mode: 0o700 });
  putFiles(site, 'postgres-files.json');
  return readFileSync(join(FOLDER, 'postgres.sql'), 'utf8').replaceAll(MADE_IN, site.root);
}

// The previous version derived a browser's cookie from the operator token, so it stayed valid as long as the token.
async function expectOldSessionsEnded({ url, token }: ServerProcess): Promise<void> {
  const signedIn = await fetch(`${url}/v1/sign-in`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: url },
    body: JSON.stringify({ token }),
  });
  const [cookie = ''] = (signedIn.headers.get('set-cookie') ?? '').split(';');
  const asBrowser = (cookie: string) => fetch(`${url}/v1/me`, { headers: { cookie: cookie } });
  expect((await asBrowser(cookie)).status).toBe(200);
  const old = createHmac('sha256', createHash('sha256').update(token).digest())
    .update('parley browser session')
    .digest('base64url');
  expect((await asBrowser(`${cookie.split('=')[0]}=${old}`)).status).toBe(401);
}

// After the upgrade a waiting run still waits and can be answered to its end, an interrupted run has failed with its
// code, and old browser sessions have ended.
export async function expectUpgraded(
  server: ServerProcess,
  { isShared }: { readonly isShared: boolean },
): Promise<void> {
  await expectOldSessionsEnded(server);
  const { client } = server;
  const { runs } = await client.list();
  const find = (request: string): string => runs.find(({ request_id: id }) => id === request)?.run_id ?? request;
  expect(runs).toHaveLength(9);
  const becomes = (request: string) => expect.poll(() => client.get(find(request)), { timeout: 30_000 });
  for (const [request, status] of [
    ['req_1', 'succeeded'],
    ['req_2', 'succeeded'],
    ['req_3', 'failed'],
    ['req_4', 'canceled'],
  ] as const) {
    expect(await client.get(find(request))).toMatchObject({ status });
    expect((await client.verify(find(request))).checks.filter(({ name, ok }) => !ok && name === 'journal')).toEqual([]);
  }
  // Its deadline passed while no process ran: decided once.
  await becomes('req_7').toMatchObject({ status: 'succeeded', result: { n: 7 } });
  const types: string[] = [];
  for await (const { type } of client.events(find('req_7'))) types.push(type);
  expect(types.filter((type) => type === 'interaction.auto_decide.timeout')).toHaveLength(1);
  for (const [request, answer, n] of [
    ['req_5', 'yes', 5],
    ['req_6', 'no', 6],
  ] as const) {
    expect(await client.get(find(request))).toMatchObject({ status: 'waiting_user' });
    const { interaction_id: id } = await client.interaction(find(request));
    await client.reply(find(request), { interaction_id: id, response: answer });
    await becomes(request).toMatchObject({ status: 'succeeded', result: { n } });
  }
  await becomes('req_8').toMatchObject({ status: 'failed', error: { code: 'ORCHESTRATOR_RESTART_INTERRUPTED' } });
  // Queued runs belong to no host: hosts that share a database start them.
  await becomes('req_9').toMatchObject(
    isShared
      ? { status: 'succeeded', result: { n: 9 } }
      : { status: 'failed', error: { code: 'ORCHESTRATOR_RESTART_INTERRUPTED' } },
  );
  expect((await client.inbox()).interactions).toEqual([]);
}

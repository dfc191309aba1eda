// What an upgrade promises, checked over HTTP on a server that was started on the data of an earlier version: finished
// runs are as they were, waiting runs are answered to their end, interrupted runs have failed with their code, and
// `verify` finds nothing to report in any run, before and after.
import { createHash, createHmac } from 'node:crypto';
import { expect } from 'vitest';
import type { Json } from '../../src/kernel/json.js';
import type { ServerProcess } from './served-process.js';

type Client = ServerProcess['client'];

const INTERRUPTED = { status: 'failed', error: { code: 'ORCHESTRATOR_RESTART_INTERRUPTED' } };
// Upgraded runs wait for a slot and for the engine's process.
const patient = { timeout: 60_000 };

async function expectVerified(client: Client, runId: string, what: string): Promise<void> {
  const { ok, checks } = await client.verify(runId);
  expect(
    checks.filter((check) => !check.ok),
    what,
  ).toEqual([]);
  expect(ok, what).toBe(true);
}

// By its request id, or by the name in its prompt.
async function findRuns(client: Client): Promise<Map<string, string>> {
  const { runs } = await client.list({ limit: 100 });
  return new Map(runs.map((run) => [/\((.*)\)$/.exec(run.prompt)?.[1] ?? run.request_id, run.run_id]));
}

async function expectDecidedOnce(client: Client, runId: string): Promise<void> {
  const types: string[] = [];
  for await (const { type } of client.events(runId)) types.push(type);
  expect(types.filter((type) => type === 'interaction.auto_decide.timeout')).toHaveLength(1);
}

interface Plan {
  // Ended before the upgrade.
  readonly ended: Readonly<Record<string, string>>;
  // The answer of each waiting run.
  readonly answers: Readonly<Record<string, Json>>;
  // Waiting runs that are canceled instead.
  readonly canceled: readonly string[];
  // Their deadlines passed while no server was running.
  readonly decided: readonly string[];
  readonly interrupted: readonly string[];
  // Somebody had asked to cancel them.
  readonly cancelRequested: readonly string[];
  // They were queued, and have no question.
  readonly begun: readonly string[];
  readonly resultOf: (name: string) => Json;
}

async function expectPlan(client: Client, plan: Plan): Promise<void> {
  const ids = await findRuns(client);
  const find = (name: string): string => ids.get(name) ?? name;
  const { ended, answers, canceled, decided, interrupted, cancelRequested, begun, resultOf } = plan;
  const names = [
    ...Object.keys(ended),
    ...Object.keys(answers),
    ...canceled,
    ...decided,
    ...interrupted,
    ...cancelRequested,
    ...begun,
  ];
  expect([...ids.keys()].toSorted()).toEqual(names.toSorted());
  const becomes = (name: string) => expect.poll(() => client.get(find(name)), { ...patient, message: name });
  for (const [name, status] of Object.entries(ended)) {
    expect(await client.get(find(name)), name).toMatchObject({ status });
    await expectVerified(client, find(name), `${name}, ended before`);
  }
  for (const name of decided) {
    await becomes(name).toMatchObject({ status: 'succeeded', result: resultOf(name) });
    await expectDecidedOnce(client, find(name));
  }
  for (const name of interrupted) await becomes(name).toMatchObject(INTERRUPTED);
  for (const name of cancelRequested) await becomes(name).toMatchObject({ status: 'canceled' });
  for (const name of begun) await becomes(name).toMatchObject({ status: 'succeeded', result: resultOf(name) });
  for (const [name, response] of Object.entries(answers)) {
    await becomes(name).toMatchObject({ status: 'waiting_user' });
    await expectVerified(client, find(name), `${name}, waiting`);
    const { interaction_id: id } = await client.interaction(find(name));
    await client.reply(find(name), { interaction_id: id, response });
    await becomes(name).toMatchObject({ status: 'succeeded', result: resultOf(name) });
  }
  for (const name of canceled) {
    await expectVerified(client, find(name), `${name}, waiting`);
    expect(await client.cancel(find(name)), name).toMatchObject({ status: 'canceled' });
  }
  expect((await client.inbox()).interactions).toEqual([]);
  for (const name of names) await expectVerified(client, find(name), `${name}, at the end`);
}

// No timeout is longer than a year: after it, the policy has decided this question as well.
const isBefore = (deadline: string): boolean => Date.now() < Date.parse(deadline);

// Of the fixture of version 5. Queued runs belong to no host: where hosts share a database they are begun.
export async function expectUpgradedFrom5(
  server: ServerProcess,
  { isShared }: { readonly isShared: boolean },
): Promise<void> {
  await expectOldSessionsEnded(server);
  const waits = isBefore('2027-11-17T00:00:00Z');
  await expectPlan(server.client, {
    ended: { req_1: 'succeeded', req_2: 'succeeded', req_3: 'failed', req_4: 'canceled' },
    answers: { req_5: 'yes', ...(waits ? { req_6: 'no' } : {}) },
    canceled: [],
    decided: ['req_7', ...(waits ? [] : ['req_6'])],
    interrupted: ['req_8', ...(isShared ? [] : ['req_9'])],
    cancelRequested: [],
    begun: isShared ? ['req_9'] : [],
    resultOf: (name) => ({ n: Number(name.slice('req_'.length)) }),
  });
}

const resultOf = (n: string) => ({ n });

// Of the fixture of version 9. The server keeps queued runs (recovery.queued). PostgreSQL never held deadlines with a
// fraction of a millisecond; there the test asks to cancel the run that was at work.
export async function expectUpgradedFrom9(
  { client }: ServerProcess,
  { isShared }: { readonly isShared: boolean },
): Promise<void> {
  const waits = isBefore('2027-11-18T20:13:02Z');
  const finish = (n: string) => `[[done ${JSON.stringify(resultOf(n))}]]`;
  await expectPlan(client, {
    ended: {
      finished: 'succeeded',
      answered: 'succeeded',
      failed: 'failed',
      canceled: 'canceled',
      continued: 'succeeded',
      codex: 'succeeded',
      forked: 'succeeded',
      decided: 'succeeded',
      'canceled-running': 'canceled',
    },
    answers: {
      waiting: 'yes',
      ...(waits ? { 'next-year': 'no' } : {}),
      'continued-waiting': 'yes',
      'codex-waiting': finish('codex-waiting'),
      'forked-waiting': finish('forked-waiting'),
      'app-server-waiting': 'mine',
      'queued-interactive': 'yes',
      ...(isShared ? {} : { fraction: 'yes' }),
    },
    canceled: isShared ? [] : ['fraction-canceled'],
    decided: ['in-a-minute', ...(waits ? [] : ['next-year'])],
    interrupted: isShared ? [] : ['running'],
    cancelRequested: isShared ? ['running'] : [],
    begun: ['queued'],
    resultOf,
  });
  await expectFollowUps(client, resultOf);
}

// New runs that continue old ones have what the events of the old ones do not have.
async function expectFollowUps(client: Client, resultOf: (name: string) => Json): Promise<void> {
  const ids = await findRuns(client);
  const done = (name: string) => ({ prompt: `[[done ${JSON.stringify(resultOf(name))}]] (${name})` });
  const continued = await client.continueFrom(ids.get('waiting') ?? '', done('newly-continued'));
  const forked = await client.fork(ids.get('codex') ?? '', done('newly-forked'));
  for (const [{ run_id: id }, name] of [
    [continued, 'newly-continued'],
    [forked, 'newly-forked'],
  ] as const) {
    await expect.poll(() => client.get(id), patient).toMatchObject({ status: 'succeeded', result: resultOf(name) });
    await expectVerified(client, id, name);
  }
}

// A version before 6 derived a browser's cookie from the operator token, so it stayed valid for as long as the token
// did.
async function expectOldSessionsEnded({ url, token }: ServerProcess): Promise<void> {
  const signedIn = await fetch(`${url}/v1/sign-in`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: url },
    body: JSON.stringify({ token }),
  });
  const [cookie = ''] = (signedIn.headers.get('set-cookie') ?? '').split(';');
  const asBrowser = (given: string) => fetch(`${url}/v1/me`, { headers: { cookie: given } });
  expect((await asBrowser(cookie)).status).toBe(200);
  const old = createHmac('sha256', createHash('sha256').update(token).digest())
    .update('parley browser session')
    .digest('base64url');
  expect((await asBrowser(`${cookie.split('=')[0]}=${old}`)).status).toBe(401);
}

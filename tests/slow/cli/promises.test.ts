// Regressions from a review of the command line: each lost a run, applied an answer twice, or printed something false.
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { openDatabase } from '../../../src/store/sqlite/open-database.js';
import {
  createSite,
  enginesOf,
  listRuns,
  onTerminal,
  parley,
  startDetached,
  untilEngine,
  untilFree,
  untilRun,
  type Site,
} from '../../support/command.js';

async function waiting(site: Site, prompt: string, ...options: string[]): Promise<string> {
  const runId = await startDetached(site, 'rehearsal', prompt, '-i', ...options);
  await untilRun(site, 'waiting_user', runId);
  await untilFree(site);
  return runId;
}

// Set after every worker has exited: a worker that is about to exit would decide it.
async function due(site: Site, prompt: string): Promise<string> {
  const runId = await waiting(site, prompt, '-o', 'interactive_require_user_reply=false');
  const db = await openDatabase(join(site.data, 'parley.db'));
  expect(
    db.prepare(`UPDATE interactions SET due_at = asked_at WHERE run_id = ? AND state = 'pending'`).run(runId).changes,
  ).toBe(1);
  db.close();
  return runId;
}

describe('an expired question', () => {
  test('is not touched by a command that only cancels or deletes another run', async () => {
    const site = createSite();
    const first = await due(site, '[[ask One?|a|b]][[done {"decided":true}]]');
    const other = await waiting(site, '[[ask Other?]]');
    // Starting the second run decided and continued the first: any process that runs turns decides expired questions.
    expect((await untilRun(site, 'succeeded', first)).result).toEqual({ decided: true });
    const again = await due(site, '[[ask Late?|a|b]][[done 1]]');
    expect((await parley(site, ['cancel', other])).code).toBe(0);
    expect((await parley(site, ['rm', other])).code).toBe(0);
    expect((await listRuns(site)).find(({ run_id: id }) => id === again)?.status).toBe('waiting_user');
  });

  test('and that is answered too late is decided by policy, and the person sees that', async () => {
    const site = createSite();
    const runId = await due(site, '[[ask One?|a|b]][[done {"decided":true}]]');
    const late = await parley(site, ['reply', runId, '1']);
    expect({ code: late.code, told: late.stderr.includes('decided without you') }).toEqual({ code: 1, told: true });
    expect((await untilRun(site, 'succeeded', runId)).result).toEqual({ decided: true });
  });
});

test('the same answer with the same key never answers the next question', async () => {
  const site = createSite();
  const runId = await waiting(site, '[[ask One?|a|b]][[ask Two?|c|d]][[done 1]]');
  expect((await parley(site, ['reply', runId, '1', '--key', 'k'])).code).toBe(3);
  const again = await parley(site, ['reply', runId, '1', '--key', 'k']);
  expect(again.code).toBe(3);
  expect((await listRuns(site))[0]).toMatchObject({ status: 'waiting_user', attempt_number: 2 });
});

test('cancel leaves the run of another worker alone, and reports the result of its own', async () => {
  const site = createSite();
  const other = await waiting(site, '[[ask Other?]]');
  const started = await startDetached(site, 'rehearsal', '[[answer At work.]][[hang]]');
  await untilEngine(site);
  expect((await parley(site, ['cancel', other])).code).toBe(1);
  expect((await listRuns(site)).find(({ run_id: id }) => id === started)?.status).toBe('running');
  expect((await parley(site, ['cancel', started])).code).toBe(0);
  await untilFree(site);
  const again = await parley(site, ['cancel', await startAndEnd(site)]);
  expect({ code: again.code, told: again.stderr.includes('has already succeeded') }).toEqual({ code: 1, told: true });
});

async function startAndEnd(site: Site): Promise<string> {
  const runId = await startDetached(site, 'rehearsal', '[[done 1]]');
  await untilRun(site, 'succeeded', runId);
  await untilFree(site);
  return runId;
}

test('rm deletes the runs that were named at the call, and nothing else', async () => {
  const site = createSite();
  const [older, newest] = [await startAndEnd(site), await startAndEnd(site)];
  expect((await parley(site, ['rm', newest, 'last'])).stdout).toBe(`deleted ${newest}\n`);
  expect((await listRuns(site)).map(({ run_id: id }) => id)).toEqual([older]);
});

test('text typed before a question appears does not answer it', async () => {
  const site = createSite();
  const pty = onTerminal(site, [
    'run',
    'rehearsal',
    '[[answer At work.]][[sleep 1500]][[approve rm -rf build]][[done 1]]',
    '-i',
  ]);
  await pty.waitFor('At work.');
  await untilEngine(site);
  pty.write('y\r');
  await pty.waitFor('[c] no and stop');
  pty.write('n\r');
  expect(await pty.exit).toBe(0);
  expect(pty.output()).toContain('decline');
  expect(pty.output()).not.toContain('answered by root: approve');
});

test('verify of a running run reports no false finding', async () => {
  const site = createSite();
  const runId = await startDetached(site, 'rehearsal', '[[events 20000 50]][[done 1]]');
  for (let status = ''; status !== 'succeeded'; status = (await listRuns(site))[0]?.status ?? '') {
    const { code, stdout } = await parley(site, ['verify', runId]);
    expect(code, stdout).toBe(0);
  }
});

test('the started command is recorded without keys, readable by the owner only', async () => {
  const site = createSite();
  const runId = await startDetached(site, 'codex', '[[done 1]] sk-abcdefgh12345678');
  await untilRun(site, 'succeeded', runId);
  await untilFree(site);
  const folder = join(site.env['PARLEY_DATA'] ?? '', 'runs', runId);
  const text = readFileSync(join(folder, 'attempts/1/command.json'), 'utf8');
  expect(text).not.toContain('sk-abcdefgh12345678');
  expect(JSON.parse(text)).toMatchObject({ env: expect.arrayContaining(['CODEX_HOME', 'PATH']) });
  expect(text).not.toContain(site.env['PATH'] ?? 'no path');
  for (const path of [folder, join(folder, 'attempts/1/command.json'), join(folder, 'rasp.jsonl')])
    expect(statSync(path).mode & 0o077).toBe(0);
  expect(await enginesOf(site)).toEqual([]);
});

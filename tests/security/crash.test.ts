// An uncaught defect ends the process in an orderly way: logged, nothing more accepted, buffered events stored.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import {
  createSite,
  enginesOf,
  parley,
  start,
  untilEngine,
  untilFree,
  untilRun,
  untilSaid,
  withData,
  workerOf,
  type Site,
} from '../support/command.js';
import { startServer, type ServerProcess } from '../support/served-process.js';

const PRELOAD = `--import=${new URL('../support/crash-on-signal.mjs', import.meta.url).href}`;
const PROMPT = '[[answer before the crash]][[hang]]';

async function serveTurn(
  site: Site,
  crash: string,
): Promise<{ readonly server: ServerProcess; readonly runId: string }> {
  const server = await startServer(site, ['--port', '0'], { env: { NODE_OPTIONS: PRELOAD, CRASH: crash } });
  const { run_id: runId } = await server.client.create({ engine: 'codex', prompt: PROMPT });
  await untilEngine(site);
  await untilSaid(site, 'before the crash');
  return { server, runId };
}

const logOf = (site: Site) => readFileSync(join(site.data, 'parley.log'), 'utf8');
const CONTROLS = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/;

describe('parley serve', () => {
  test.each([
    ['an exception', 'throw', 'a defect'],
    ['a rejection', 'reject', 'a rejection'],
  ])('ends with an error after %s, and the next start recovers its run', async (_what, crash, message) => {
    const site = createSite();
    const { server, runId } = await serveTurn(site, crash);
    server.child.kill('SIGUSR2');
    const { code, stderr } = await server.ended;
    expect(code).toBe(1);
    expect(stderr).toContain(message);
    expect(stderr).not.toMatch(CONTROLS);
    expect(logOf(site)).toContain(message);
    expect(logOf(site)).not.toMatch(CONTROLS);
    expect(await enginesOf(site)).toEqual([]);
    // A process in an unknown state does not store the end of the turn: the next start judges it.
    expect(await withData(site, ({ store }) => store.loadRun(runId))).toMatchObject({ status: 'running' });
    const again = await startServer(site);
    // It ends the run beside other work.
    await expect.poll(async () => (await again.client.get(runId)).status).toBe('failed');
    expect((await again.client.get(runId)).error).toMatchObject({ code: 'ORCHESTRATOR_RESTART_INTERRUPTED' });
    expect((await parley(site, ['verify', runId])).code).toBe(0);
  });

  test('ends even if its event loop hangs after the defect', async () => {
    const site = createSite();
    const { server } = await serveTurn(site, 'hang');
    server.child.kill('SIGUSR2');
    expect((await server.ended).code).not.toBe(0);
  });
});

test('a worker ends with an error, and its run is recovered by the next command', async () => {
  const site = createSite();
  const run = start(site, ['run', 'codex', PROMPT], { env: { NODE_OPTIONS: PRELOAD, CRASH: 'throw' } });
  await untilEngine(site);
  await untilSaid(site, 'before the crash');
  process.kill(workerOf(site), 'SIGUSR2');
  await run.ended;
  await untilFree(site);
  expect(logOf(site)).toContain('a defect');
  expect(await enginesOf(site)).toEqual([]);
  await parley(site, ['run', 'rehearsal', 'next']);
  expect(await untilRun(site, 'failed')).toMatchObject({ error: { code: 'ORCHESTRATOR_RESTART_INTERRUPTED' } });
});

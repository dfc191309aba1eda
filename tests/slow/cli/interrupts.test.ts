// Ctrl-C at each stage, and signals of scripts: nothing is lost, and canceled work has stopped.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import {
  createSite,
  enginesOf,
  hasWorker,
  listRuns,
  onTerminal,
  parley,
  start,
  startDetached,
  untilBegun,
  untilEngine,
  untilFree,
  untilRun,
  untilSaid,
  workerOf,
  type Site,
} from '../../support/command.js';

const WORKING = /(?:codex|rehearsal) · [^]*At work\.[^]*/;
const hang = '[[answer At work.]][[hang]]';
// The stand-ins really run their tools: this one runs until the test releases it.
const until = (name: string): string => `[[tool until test -e ${name}; do sleep 0.05; done]]`;
const letGo = (site: Site, name: string): void => writeFileSync(join(site.cwd, name), '');

test('while the engine works: left running, it comes to its end by itself', async () => {
  const site = createSite();
  const pty = onTerminal(site, [
    'run',
    'codex',
    `[[answer At work.]]${until('go')}[[done {"left":true}]]`,
    '-p',
    'full',
  ]);
  await pty.waitFor(WORKING);
  pty.interrupt();
  await pty.waitFor(/still working\.\s+\[l\]eave it running, \[c\]ancel it[^]*> /);
  pty.write('l\n');
  expect(await pty.exit).toBe(130);
  expect(pty.output()).toMatch(/left running: run_\w+\r\n {2}parley watch run_\w+ /);
  letGo(site, 'go');
  expect(await untilRun(site, 'succeeded')).toMatchObject({ result: { left: true } });
});

test('while the engine works: canceled, exit code 4 and no process is left', async () => {
  const site = createSite();
  const pty = onTerminal(site, ['run', 'rehearsal', hang]);
  await pty.waitFor(WORKING);
  pty.interrupt();
  await pty.waitFor('> ');
  pty.write('c\n');
  await pty.waitFor('canceled');
  expect(await pty.exit).toBe(4);
  expect(await enginesOf(site)).toEqual([]);
  await untilFree(site);
});

test('while the engine works: Enter resumes watching without gaps; a second Ctrl-C leaves', async () => {
  const site = createSite();
  const pty = onTerminal(site, [
    'run',
    'codex',
    `[[answer At work.]]${until('one')}[[answer Meanwhile.]]${until('two')}[[answer Later.]][[hang]]`,
    '-p',
    'full',
  ]);
  await pty.waitFor(WORKING);
  pty.interrupt();
  await pty.waitFor('> ');
  // The message that is printed while the question is open.
  letGo(site, 'one');
  await untilSaid(site, 'Meanwhile.');
  pty.write('\n');
  await pty.waitFor(/Meanwhile\./);
  letGo(site, 'two');
  await pty.waitFor(/Later\./);
  pty.interrupt();
  await pty.waitFor('> ');
  pty.interrupt();
  expect(await pty.exit).toBe(130);
  expect(await enginesOf(site)).not.toEqual([]);
  expect((await parley(site, ['cancel', 'last'])).code).toBe(0);
  expect(await enginesOf(site)).toEqual([]);
});

test('a run that has ended while the person thought about it is not left: its end is shown', async () => {
  const site = createSite();
  const pty = onTerminal(site, [
    'run',
    'codex',
    `[[answer At work.]]${until('go')}[[done {"ended":true}]]`,
    '-p',
    'full',
  ]);
  await pty.waitFor(WORKING);
  pty.interrupt();
  await pty.waitFor('> ');
  letGo(site, 'go');
  await untilRun(site, 'succeeded');
  pty.write('l\n');
  await pty.waitFor('✓ done');
  expect(await pty.exit).toBe(0);
});

test('Ctrl-C before the agent has begun is not lost', async () => {
  const site = createSite();
  const pty = onTerminal(site, ['run', 'rehearsal', hang]);
  // The worker owns the directory and may not have reported its run yet.
  await untilBegun(site);
  pty.interrupt();
  await pty.waitFor('> ');
  pty.write('c\n');
  expect(await pty.exit).toBe(4);
  expect(await enginesOf(site)).toEqual([]);
});

test('at a question: left waiting is exit code 3, canceled is 4, Enter goes back to it', async () => {
  const site = createSite();
  const pty = onTerminal(site, ['run', 'rehearsal', '[[ask Which?|A|B]][[ask And then?|C|D]]', '-i']);
  await pty.waitFor('or text ');
  pty.interrupt();
  await pty.waitFor(/The question is waiting for you\.[^]*> /);
  pty.write('\n');
  await pty.waitFor('or text ');
  pty.write('1\n');
  await pty.waitFor(/\? And then\?[^]*or text /);
  pty.interrupt();
  await pty.waitFor('> ');
  pty.write('l\n');
  expect(await pty.exit).toBe(3);
  await untilFree(site);
  const again = onTerminal(site, ['reply', 'last']);
  await again.waitFor(/\? And then\?[^]*or text /);
  again.interrupt();
  await again.waitFor('> ');
  again.write('c\n');
  expect(await again.exit).toBe(4);
  expect((await listRuns(site))[0]?.status).toBe('canceled');
});

test('during watch: exit code 130, and the run is untouched', async () => {
  const site = createSite();
  const runId = await startDetached(site, 'rehearsal', hang);
  const pty = onTerminal(site, ['watch', 'last']);
  await pty.waitFor(WORKING);
  pty.interrupt();
  expect(await pty.exit).toBe(130);
  const plain = start(site, ['watch', runId, '--json']);
  await plain.waitFor('At work.');
  plain.child.kill('SIGINT');
  expect((await plain.ended).code).toBe(130);
  expect((await listRuns(site))[0]?.status).toBe('running');
  expect(hasWorker(site)).toBe(true);
  expect(await enginesOf(site)).toHaveLength(1);
});

test.each([
  ['SIGINT', []],
  ['SIGTERM', []],
  ['SIGINT', ['--json']],
] as const)('%s without a terminal cancels the run: exit code 4, nothing is left', async (signal, flags) => {
  const site = createSite();
  const command = start(site, ['run', 'rehearsal', hang, ...flags]);
  await command.waitFor('At work.');
  await untilEngine(site);
  command.child.kill(signal);
  const { code, stdout } = await command.ended;
  expect(code).toBe(4);
  expect(stdout).toMatch(flags.length > 0 ? /"status":"canceled"/ : /canceled/);
  expect(await enginesOf(site)).toEqual([]);
  await untilFree(site);
});

test('a signal that comes while the worker starts cancels the run as well', async () => {
  const site = createSite();
  const command = start(site, ['run', 'rehearsal', hang]);
  await untilBegun(site);
  command.child.kill('SIGTERM');
  expect((await command.ended).code).toBe(4);
  expect(await enginesOf(site)).toEqual([]);
});

test('SIGTERM to a worker ends its run with its code, and watchers see it', async () => {
  const site = createSite();
  const command = start(site, ['run', 'rehearsal', hang]);
  await command.waitFor('At work.');
  await untilEngine(site);
  process.kill(workerOf(site), 'SIGTERM');
  const { code, stdout } = await command.ended;
  expect({ code, told: stdout.includes('ORCHESTRATOR_RESTART_INTERRUPTED') }).toEqual({ code: 1, told: true });
  expect(await enginesOf(site)).toEqual([]);
});

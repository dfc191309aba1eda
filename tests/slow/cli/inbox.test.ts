// The inbox on the command line, the console by one command, and how a run is started from a terminal.
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createSite, listRuns, onTerminal, parley, untilFree, type Site } from '../../support/command.js';
import { startServer } from '../../support/served-process.js';

async function ask(site: Site, prompt: string): Promise<string> {
  const { code, stdout, stderr } = await parley(site, ['run', 'rehearsal', prompt, '-i', '--json']);
  expect(code, stderr).toBe(3);
  await untilFree(site);
  return (JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as { run: { run_id: string } }).run.run_id;
}

test('inbox lists waiting questions, oldest first, and answers them by number', async () => {
  const site = createSite();
  expect((await parley(site, ['inbox'])).stderr).toBe('Nothing is waiting for you.\n');
  const ids = [
    await ask(site, 'Name it [[ask First?|A|B]][[done 1]]'),
    await ask(site, 'Test it [[ask Second?|A|B]][[done 1]]'),
  ];
  const { stdout } = await parley(site, ['inbox']);
  expect(stdout).toMatch(/#  RUN .*TASK\n1  \w{6}.*First\? +Name it.*\n2  \w{6}.*Second\? +Test it/);
  const lines = (await parley(site, ['inbox', '--json'])).stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { run: { run_id: string } });
  expect(lines.map(({ run }) => run.run_id)).toEqual(ids);
  const pty = onTerminal(site, ['inbox']);
  await pty.waitFor('1-2 to answer, Enter to leave > ');
  pty.write('7\n');
  await pty.waitFor('There is no question 7');
  pty.write('2\n');
  await pty.waitFor(/rehearsal in .*Test it[^]*\? Second\?[^]*1-2 or text /);
  pty.write('B\n');
  await pty.waitFor('Sent: "B" (option 2)');
  await pty.waitFor('to answer, Enter to leave > ');
  pty.write('1\n');
  await pty.waitFor(/\? First\?[^]*1-2 or text /);
  pty.write('/later\n');
  await pty.waitFor('to answer, Enter to leave > ');
  pty.write('\n');
  expect(await pty.exit).toBe(0);
  await expect
    .poll(async () => (await listRuns(site)).find(({ run_id: id }) => id === ids[1])?.status)
    .toBe('succeeded');
});

test('reply last answers the newest run that waits, and says so when none does', async () => {
  const site = createSite();
  const waiting = await ask(site, '[[ask First?|A|B]][[done 1]]');
  expect((await parley(site, ['run', 'rehearsal', '[[done 1]]'])).code).toBe(0);
  const { stdout } = await parley(site, ['ls']);
  const short = waiting.slice(-6);
  expect(stdout).toContain(short);
  expect(stdout).not.toContain(waiting);
  expect((await parley(site, ['show', short])).stdout).toContain(waiting);
  const { code, stderr } = await parley(site, ['reply', 'last', 'A']);
  expect(code, stderr).toBe(0);
  const again = await parley(site, ['reply', 'last', 'A']);
  expect(again.code).toBe(1);
  expect(again.stderr).toContain('No run is waiting for you.');
});

test('a run started in a terminal may ask, one from a script may not, and both can be chosen', async () => {
  const site = createSite();
  const prompt = '[[ask Which?|A]]';
  const pty = onTerminal(site, ['run', 'rehearsal', prompt]);
  await pty.waitFor('or text ');
  pty.write('/cancel\n');
  expect(await pty.exit).toBe(4);
  const unattended = onTerminal(site, ['run', 'rehearsal', prompt, '--auto'], { cols: 200 });
  expect(await unattended.exit).toBe(1);
  expect(unattended.output()).toContain('AUTO_MODE_CANNOT_ASK');
  expect((await parley(site, ['run', 'rehearsal', prompt])).code).toBe(1);
  expect((await parley(site, ['run', 'rehearsal', prompt, '-i'])).code).toBe(3);
  const both = await parley(site, ['run', 'rehearsal', prompt, '-i', '--auto']);
  expect(both.code).toBe(2);
  expect(both.stderr).toContain('cannot be used with');
});

test('open starts nothing: it opens the console of a running server, or prints its address', async () => {
  const site = createSite();
  const none = await parley(site, ['open']);
  expect(none.code).toBe(1);
  expect(none.stderr).toMatch(/No server is running for .*\. Start one: parley serve/);
  const server = await startServer(site);
  try {
    expect((await parley(site, ['open'])).stdout).toBe(`${server.url}/\n`);
    const browser = join(site.root, 'browser');
    writeFileSync(browser, `#!/bin/sh\necho "$@" > ${site.root}/opened\n`);
    chmodSync(browser, 0o755);
    const pty = onTerminal(site, ['open'], { env: { BROWSER: browser } });
    expect(await pty.exit).toBe(0);
    expect(pty.output()).toContain(`Opening ${server.url}/`);
    await expect.poll(() => existsSync(join(site.root, 'opened'))).toBe(true);
    await expect.poll(() => readFileSync(join(site.root, 'opened'), 'utf8')).toBe(`${server.url}/\n`);
  } finally {
    server.child.kill('SIGTERM');
    await server.ended;
  }
});

test('the engine’s own output is one line, and show --details has all of it', async () => {
  const site = createSite();
  const { stdout, stderr } = await parley(site, ['run', 'rehearsal', '[[stderr 3]][[fail]]']);
  expect(stdout).toMatch(/· engine details: 3 lines of stderr/);
  expect(stdout.match(/failed/g)).toHaveLength(1);
  expect(stderr).not.toContain('failed');
  expect(stderr).toContain('--details');
  expect((await parley(site, ['show', 'last', '--details'])).stdout.match(/^stderr \| /gm)).toHaveLength(3);
});

// A failure of the command, the terminal, the pipe or the worker does not affect the run.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { startServer } from '../../support/served-process.js';
import {
  createSite,
  enginesOf,
  expectLines,
  hasWorker,
  listRuns,
  onTerminal,
  parley,
  start,
  startDetached,
  untilEngine,
  untilFree,
  untilRun,
  workerOf,
} from '../../support/command.js';

const BUILT = new URL('../../../bin/parley.js', import.meta.url).pathname;
const hang = '[[answer At work.]][[hang]]';

test.each(['', ' --json'])(
  'a reader that has seen enough closes the pipe: parley run%s is quiet, and the run comes to its end',
  async (flag) => {
    const site = createSite();
    const { stdout, stderr } = await promisify(execFile)(
      'bash',
      [
        '-c',
        `"$0" "$1" run rehearsal '[[events 3000 100]][[done {"all":true}]]'${flag} | head -1; echo "codes ` +
          `\${PIPESTATUS[0]}"`,
        process.execPath,
        BUILT,
      ],
      { cwd: site.cwd, env: site.env },
    );
    expect({ stderr, lines: stdout.trimEnd().split('\n').length, end: stdout.endsWith('codes 130\n') }).toEqual({
      stderr: '',
      lines: 2,
      end: true,
    });
    expect(await untilRun(site, 'succeeded')).toMatchObject({ result: { all: true } });
  },
);

test('commands that print much are quiet too when the reader has seen enough', async () => {
  const site = createSite();
  await parley(site, ['run', 'rehearsal', '[[events 3000 100]][[done 1]]', '--json']);
  await Promise.all(
    ['watch last --json', 'watch last', 'show last', 'logs last', 'replay last --print'].map(async (command) => {
      const { stdout, stderr } = await promisify(execFile)(
        'bash',
        ['-c', `"$0" "$1" ${command} | head -c 20 >/dev/null; echo "\${PIPESTATUS[0]}"`, process.execPath, BUILT],
        { cwd: site.cwd, env: site.env },
      );
      expect({ command, stdout, stderr }).toEqual({ command, stdout: '0\n', stderr: '' });
    }),
  );
});

test('a terminal that is closed leaves the run to its worker', async () => {
  const site = createSite();
  const pty = onTerminal(site, ['run', 'rehearsal', hang]);
  await pty.waitFor('At work.');
  await untilEngine(site);
  pty.kill();
  await pty.exit;
  expect((await listRuns(site))[0]?.status).toBe('running');
  expect(hasWorker(site)).toBe(true);
  expect(await enginesOf(site)).toHaveLength(1);
});

test('closing the terminal or hanging up the command while a server runs the run leaves it to the server', async () => {
  const site = createSite();
  const server = await startServer(site);
  const pty = onTerminal(site, ['run', 'rehearsal', hang]);
  await pty.waitFor('At work.');
  const hungUp = start(site, ['run', 'rehearsal', hang]);
  await hungUp.waitFor('At work.');
  await expect.poll(() => enginesOf(site).then((engines) => engines.length)).toBe(2);
  const engines = await enginesOf(site);
  pty.kill();
  await pty.exit;
  hungUp.child.kill('SIGHUP');
  await hungUp.ended;
  // Neither the server nor the engines have noticed.
  expect((await server.client.list({})).runs.map(({ status }) => status)).toEqual(['running', 'running']);
  expect(await enginesOf(site)).toEqual(engines);
  const watching = start(site, ['watch', 'last']);
  await watching.waitFor('At work.');
  for (const { run_id: id } of await listRuns(site)) expect((await server.client.cancel(id)).status).toBe('canceled');
  expect((await watching.ended).code).toBe(4);
  server.child.kill('SIGTERM');
  expect((await server.ended).code).toBe(0);
});

test('a terminal that hangs up at a question leaves the question waiting, and it is answered later', async () => {
  const site = createSite();
  const pty = onTerminal(site, ['run', 'rehearsal', '[[ask Which?|A|B]][[done 1]]', '-i']);
  await pty.waitFor('or text ');
  pty.kill();
  await pty.exit;
  await untilFree(site);
  expect((await parley(site, ['reply', 'last', '1'])).code).toBe(0);
});

test('a worker killed while its run is watched: the run ends with its code, watch says so, retry works', async () => {
  const site = createSite();
  const command = start(site, ['run', 'rehearsal', hang]);
  await command.waitFor('At work.');
  const engine = await untilEngine(site);
  process.kill(workerOf(site), 'SIGKILL');
  const { code, stdout, stderr } = await command.ended;
  expect(code).toBe(1);
  expect(stdout).toContain('✗ failed: ORCHESTRATOR_RESTART_INTERRUPTED');
  expect(stderr).toMatch(/^Retry: parley retry run_\w+ /);
  // The engine that outlived its worker was ended as well.
  expect((await enginesOf(site)).map(({ pid }) => pid)).not.toContain(engine);
  expect((await parley(site, ['verify', 'last'])).code).toBe(0);
  const retried = start(site, ['retry', 'last', '--json']);
  await retried.waitFor('At work.');
  retried.child.kill('SIGINT');
  expect((await retried.ended).code).toBe(4);
  expect((await listRuns(site)).map((run) => run.status)).toEqual(['canceled', 'failed']);
});

test('a watcher of a run whose worker was killed sees that, and nothing is changed', async () => {
  const site = createSite();
  await startDetached(site, 'rehearsal', hang);
  const watching = start(site, ['watch', 'last']);
  // It shows the prompt first, which has the same text.
  await untilEngine(site);
  process.kill(workerOf(site), 'SIGKILL');
  const { code, stderr } = await watching.ended;
  expect(code).toBe(1);
  expect(stderr).toMatch(/no process works on run run_\w+ any more \(running\)\n {2}parley retry run_/);
  expect((await listRuns(site))[0]?.status).toBe('running');
});

test('a second writer sees who has the directory; readers work; cancel reaches the worker', async () => {
  const site = createSite();
  const runId = await startDetached(site, 'rehearsal', hang);
  await untilRun(site, 'running', runId);
  const pid = workerOf(site);
  const second = await parley(site, ['run', 'rehearsal', 'hi']);
  expect(second).toMatchObject({ code: 1, stdout: '' });
  expect(second.stderr).toBe(
    `parley: The data directory ${site.data} is in use by process ${pid}, which works on ${runId}.\n  ls, show and ` +
      'watch work meanwhile. Try again when that run waits or has ended, or run parley serve: then any number of ' +
      'commands work at once.\n',
  );
  const json = await parley(site, ['rm', runId, '--json']);
  expect({ code: json.code, error: expectLines(json.stderr)[0] }).toMatchObject({
    code: 1,
    error: { error: { code: 'DATA_DIR_IN_USE' } },
  });
  expect((await parley(site, ['ls', '-q'])).stdout).toBe(`${runId}\n`);
  expect((await parley(site, ['show', 'last'])).stdout).toMatch(/status +running[^]*At work\./);
  expect((await parley(site, ['doctor'])).stdout).toContain(`process ${pid} is writing`);
  const watching = start(site, ['watch', 'last']);
  await watching.waitFor('At work.');
  expect(await parley(site, ['cancel', runId])).toMatchObject({ code: 0, stdout: `canceled ${runId}\n` });
  expect(await watching.ended).toMatchObject({ code: 4, stdout: expect.stringContaining('canceled') as string });
  expect(await enginesOf(site)).toEqual([]);
  await untilFree(site);
  // A second directory is independent.
  expect((await parley(site, ['run', 'rehearsal', '[[done 1]]', '--data', `${site.root}/other`])).code).toBe(0);
});

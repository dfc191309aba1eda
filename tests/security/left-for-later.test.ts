// Files that an agent leaves for the next user of a folder: hooks of Git, settings of direnv, npm and editors, programs
// with well-known names. They run as you when you use Git, npm or an editor there. Parley uses none of these, so
// nothing of them runs because of Parley.
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { createSite, parley, untilFree, type Site } from '../support/command.js';
import { startServer } from '../support/served-process.js';

const PROGRAMS = [
  '.git/hooks/pre-commit',
  '.git/hooks/post-checkout',
  '.git/hooks/post-index-change',
  '.husky/pre-commit',
  'codex',
  'git',
  'node',
  'sh',
  'ps',
  'parley',
  'node_modules/.bin/codex',
  'node_modules/.bin/parley',
  'evil',
];

// Each of them leaves the mark.
function plant(site: Site, mark: string): void {
  const put = (path: string, text: string): string => {
    const file = join(site.cwd, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
    return file;
  };
  for (const path of PROGRAMS) chmodSync(put(path, `#!/bin/sh\ntouch '${mark}'\n`), 0o755);
  const evil = join(site.cwd, 'evil');
  put('.git/HEAD', 'ref: refs/heads/main\n');
  for (const folder of ['objects', 'refs']) mkdirSync(join(site.cwd, '.git', folder));
  put(
    '.git/config',
    `[core]\n\trepositoryformatversion = 0\n\tfsmonitor = ${evil}\n\tpager = ${evil}\n\tsshCommand = ` +
      `${evil}\n[diff]\n\texternal = ${evil}\n`,
  );
  put('.envrc', `touch '${mark}'\n`);
  put('.env', `NODE_OPTIONS=--require=${join(site.cwd, 'evil.cjs')}\nPATH=${site.cwd}\n`);
  put('evil.cjs', `require('node:fs').writeFileSync(${JSON.stringify(mark)}, '')\n`);
  put(
    'package.json',
    JSON.stringify({
      type: 'commonjs',
      main: 'evil.cjs',
      imports: { '#x': './evil.cjs' },
      scripts: { preinstall: evil, postinstall: evil, prepare: evil, test: evil, start: evil },
    }),
  );
  put('.npmrc', `script-shell=${evil}\nnode-options=--require=${join(site.cwd, 'evil.cjs')}\n`);
  put('node_modules/zod/index.js', `require('node:fs').writeFileSync(${JSON.stringify(mark)}, '')\n`);
  put(
    '.vscode/tasks.json',
    JSON.stringify({
      version: '2.0.0',
      tasks: [{ label: 'x', type: 'shell', command: evil, runOptions: { runOn: 'folderOpen' } }],
    }),
  );
  put('parley.config.js', `require('./evil.cjs')\n`);
  put('config.json', JSON.stringify({ engines: { codex: { bin: evil } } }));
}

test('nothing an agent leaves in a folder runs through turns, reads, verify, archives, forks or deletion', async () => {
  const site = createSite();
  const mark = join(site.root, 'mark');
  const run = (...args: string[]) => parley(site, args);
  // A waiting run, in the folder where its agent has left them; the next turn starts after that.
  expect((await run('run', 'codex', '[[answer Hello.]][[ask Which?|A|B]][[done 1]]', '-i', '--json')).code).toBe(3);
  plant(site, mark);
  for (const args of [['ls'], ['show', 'last'], ['logs', 'last'], ['verify', 'last'], ['replay', 'last'], ['doctor']])
    expect([args, (await run(...args)).code]).toEqual([args, 0]);
  expect((await run('reply', 'last', '1')).code).toBe(0);
  await untilFree(site);
  const server = await startServer(site);
  const { run_id: id } = (await server.client.list({})).runs[0] ?? { run_id: '' };
  const { run_id: fork } = await server.client.fork(id, { prompt: '[[answer Again.]]' });
  await expect
    .poll(() => server.client.get(fork).then(({ status }) => status), { timeout: 20_000 })
    .toBe('waiting_user');
  for (const path of ['files', 'archive', 'logs'])
    expect(
      (await fetch(`${server.url}/v1/runs/${id}/${path}`, { headers: { authorization: `Bearer ${server.token}` } }))
        .status,
      path,
    ).toBe(200);
  await server.client.cancel(fork);
  for (const each of [fork, id]) await server.client.delete(each);
  server.child.kill('SIGTERM');
  expect((await server.ended).code).toBe(0);
  expect(existsSync(mark)).toBe(false);
  // They are still there and still work.
  for (const program of PROGRAMS) expect(existsSync(join(site.cwd, program))).toBe(true);
  execFileSync(join(site.cwd, '.git/hooks/pre-commit'));
  expect(existsSync(mark)).toBe(true);
});

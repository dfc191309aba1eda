// Whole commands with PARLEY_LANG=zh: nothing that Parley says is English, except what programs read.
import { once } from 'node:events';
import { appendFileSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runFolder } from '../../../src/journal/run-folder.js';
import { findEnglish } from '../../support/chinese.js';
import { createSite, parley, type Ended, type Site } from '../../support/command.js';

const SCRIPT = '[[answer 好。]][[approve rm -rf 目录]][[ask 哪个？|甲|乙]][[done {"text":"完"}]]';

function inChinese(site: Site, args: readonly string[]): Promise<Ended> {
  return parley(site, args, { env: { PARLEY_LANG: 'zh' } });
}

// A port that nothing listens on.
async function closedPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

// The English lines of a command's output. The engine of these tests speaks Chinese, but for its question about a
// command.
function englishIn({ stdout, stderr }: Ended): string[] {
  return `${stdout}${stderr}`
    .replaceAll('May this command be run?', '')
    .split('\n')
    .filter((line) => findEnglish(line) !== null);
}

test('a conversation, its checks and the setup are shown without an English sentence', async () => {
  const site = createSite();
  const outputs = new Map<string, Ended>();
  const call = async (...args: string[]): Promise<Ended> => {
    const ended = await inChinese(site, args);
    outputs.set(args.join(' '), ended);
    return ended;
  };
  for (const args of [['ls'], ['inbox'], ['audit'], ['verify', '--all']]) await call(...args);
  expect((await call('run', 'rehearsal', SCRIPT, '-i')).code).toBe(3);
  for (const args of [['ls'], ['inbox'], ['reply', 'last', 'n 不行']]) await call(...args);
  expect((await call('reply', 'last', '2')).code).toBe(0);
  await call('show', 'last', '--details');
  const verified = await call('verify', 'last');
  expect(verified.stdout).toContain('全部');
  await call('replay', 'last');
  await call('token', 'add', 'anna');
  for (const args of [['token', 'ls'], ['audit', '--verify'], ['config'], ['doctor'], ['doctor', '--full']])
    await call(...args);
  const url = `http://127.0.0.1:${await closedPort()}/`;
  const webhooks = [{ name: 'h', url, secret_env: 'HOOK' }];
  writeFileSync(join(site.data, 'config.json'), JSON.stringify({ webhooks }));
  const failed = await parley(site, ['webhook', 'test', 'h'], {
    env: { PARLEY_LANG: 'zh', HOOK: `whsec_${Buffer.alloc(32, 7).toString('base64')}` },
  });
  expect(failed.stdout).toBe('未能投递到“h”：没有程序在监听\n');
  const wrong = [...outputs].flatMap(([args, ended]) => englishIn(ended).map((line) => `${args}: ${line}`));
  expect(wrong).toEqual([]);
});

test('altered files are reported in Chinese, and in English to programs', async () => {
  const site = createSite();
  await parley(site, ['run', 'rehearsal', '[[done "x"]]']);
  const listed = await parley(site, ['ls', '--quiet']);
  appendFileSync(runFolder(site.data, listed.stdout.trim()).attempt(1).logs.stdout, 'x');
  const verified = await inChinese(site, ['verify', 'last']);
  expect([verified.code, verified.stdout]).toEqual([
    1,
    expect.stringMatching(/✗ hashes +第 1 轮 stdout：日志有 \d+ 个字节/),
  ]);
  const doctor = await inChinese(site, ['doctor', '--full']);
  expect([doctor.code, doctor.stdout]).toEqual([
    1,
    expect.stringMatching(/✗ damage +1 个运行中有 1 个已损坏：run_\w+（hashes：/),
  ]);
  const json = async (args: readonly string[], language: string): Promise<string> =>
    // Other programs use the disk meanwhile.
    (await parley(site, [...args, '--json'], { env: { PARLEY_LANG: language } })).stdout.replace(/[\d.]+ .B free/, '');
  for (const args of [['verify', 'last'], ['verify', '--all'], ['doctor', '--full'], ['config'], ['audit']])
    expect(await json(args, 'zh'), args.join(' ')).toBe(await json(args, 'en'));
});

test('the demo is narrated in Chinese', async () => {
  const { code, stdout } = await inChinese(createSite(), ['demo']);
  expect(code).toBe(0);
  expect(stdout.match(/^\d\. .*$/gm)).toHaveLength(5);
  const narration = stdout.split('\n').filter((line) => /^(?:\d\.| {3}\S)/.test(line));
  expect(narration.length).toBeGreaterThan(15);
  expect(narration.filter((line) => findEnglish(line.replace('How shall I go on?', '')) !== null)).toEqual([]);
});

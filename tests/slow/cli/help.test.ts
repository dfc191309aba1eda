// Help, completion and the demo: the first things that a newcomer sees.
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { createSite, listRuns, parley, start, untilGone, type Site } from '../../support/command.js';

const BUILT = new URL('../../../bin/parley.js', import.meta.url).pathname;
const COMMANDS = [
  'run',
  'reply',
  'continue',
  'fork',
  'retry',
  'cancel',
  'rm',
  'ls',
  'inbox',
  'show',
  'watch',
  'logs',
  'verify',
  'replay',
  'parse',
  'serve',
  'open',
  'migrate',
  'import',
  'compact',
  'config',
  'doctor',
  'demo',
  'contract',
  'completion',
  'token',
  'link',
  'audit',
  'webhook',
];

async function helpOf(site: Site, ...command: string[]): Promise<string> {
  const { code, stdout, stderr } = await parley(site, [...command, '--help']);
  expect({ command, code, stderr }).toEqual({ command, code: 0, stderr: '' });
  return stdout;
}

test('every command has help with a description, and its examples use only existing commands and options', async () => {
  const site = createSite();
  const general = await helpOf(site);
  expect(
    [...general.matchAll(/^ {2}([a-z]+)(?: \[?[<[a-z-].*?)? {2,}\S/gm)]
      .map((match) => match[1])
      .filter((name) => name !== 'help' && name !== 'parley'),
  ).toEqual(COMMANDS);
  expect(general).toContain(
    'Exit codes: 0 succeeded, 1 failed, 2 usage, 3 waiting for you, 4 canceled,\n130 interrupted',
  );
  const helps = new Map<string, string>();
  await Promise.all(COMMANDS.map(async (command) => helps.set(command, await helpOf(site, command))));
  for (const [command, help] of helps) {
    expect(help, command).toMatch(new RegExp(`^Usage: parley ${command}[^\n]*\n\n[A-Z][^]+?[.:|a-z]\n`));
    // Every option is explained.
    for (const line of help.match(/^ {2}-.+$/gm) ?? []) expect(line, command).toMatch(/ {2}\S/);
  }
  const examples = [general, ...helps.values()].flatMap((help) =>
    (help.split('Examples:')[1] ?? '').split('\n').filter((line) => /\bparley /.test(line)),
  );
  expect(examples.length).toBeGreaterThan(12);
  for (const example of examples) {
    const words = (
      /\bparley ([^|<>;]*)/.exec(example.replace(/"[^"]*"|'[^']*'/g, 'TEXT').replace(/ {3,}.*$/, ''))?.[1] ?? ''
    )
      .trim()
      .split(/\s+/);
    expect(COMMANDS, example).toContain(words[0]);
    for (const option of words.filter((word) => word.startsWith('-') && word !== '-'))
      expect(helps.get(words[0] ?? ''), example).toMatch(new RegExp(`(?:^|[ ,])${option}\\b`, 'm'));
  }
  expect((await parley(site, ['--version'])).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  expect(existsSync(site.data)).toBe(false);
});

test('without a command the help is shown as a mistake is', async () => {
  const { code, stdout, stderr } = await parley(createSite(), []);
  expect({ code, stdout, help: stderr.startsWith('Usage: parley') }).toEqual({ code: 2, stdout: '', help: true });
});

test('the completion for bash loads, and completes commands, options and the runs there are', async () => {
  const site = createSite();
  await parley(site, ['run', 'rehearsal', '[[done 1]]']);
  const [run] = await listRuns(site);
  const bin = join(site.root, 'bin');
  mkdirSync(bin);
  symlinkSync(BUILT, join(bin, 'parley'));
  const complete = async (...words: string[]): Promise<string[]> => {
    const script =
      'set -eu; eval "$(parley completion bash)"; COMP_WORDS=(parley "$@"); COMP_CWORD=$#; _parley; ' +
      `printf '%s\\n' "\${COMPREPLY[@]:-}"`;
    const { stdout, stderr } = await promisify(execFile)('bash', ['-c', script, 'bash', ...words], {
      env: { ...site.env, PATH: `${bin}:${site.env['PATH'] ?? ''}` },
    });
    expect(stderr).toBe('');
    return stdout.trimEnd().split('\n');
  };
  expect(await complete('re')).toEqual(['reply', 'retry', 'replay']);
  expect(await complete('')).toEqual([...COMMANDS, '--help', '--version']);
  expect(await complete('run', '--sch')).toEqual(['--schema']);
  expect(await complete('show', 'run_')).toEqual([run?.run_id]);
  expect(await complete('show', 'la')).toEqual(['last']);
  for (const shell of ['zsh', 'fish']) {
    const { code, stdout } = await parley(site, ['completion', shell]);
    expect(code).toBe(0);
    for (const command of COMMANDS) expect(stdout).toMatch(new RegExp(`\\b${command}\\b`));
  }
});

test('parley demo recovers after it killed every process, and leaves nothing behind', async () => {
  const site = createSite();
  const folder = join(site.root, 'tmp');
  mkdirSync(folder);
  const { code, stdout, stderr } = await parley(site, ['demo'], { env: { TMPDIR: folder } });
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const steps = [
    /1\. An agent is started/,
    /How shall I go on\?/,
    /waiting: 0 processes/,
    /2\. /,
    /kill -9 \d+/,
    /3\. /,
    /The question is still there/,
    /4\. /,
    /answered by/,
    /✓ done/,
    /5\. /,
    /(?: {3}✓ .+\n){10}/,
  ];
  expect(stdout).toMatch(new RegExp(steps.map(({ source }) => source).join('[^]*')));
  expect(readdirSync(folder)).toEqual([]);
  expect(existsSync(site.data)).toBe(false);
});

test('a demo that is interrupted leaves no process behind', async () => {
  const site = createSite();
  const demo = start(site, ['demo'], { env: { TMPDIR: site.root } });
  await demo.waitFor(/orchestrated by process \d+/);
  demo.child.kill('SIGINT');
  const { stdout } = await demo.ended;
  await untilGone(Number(/orchestrated by process (\d+)/.exec(stdout)?.[1]));
});

test('the data of a kept demo can be inspected', async () => {
  const site = createSite();
  const { code, stdout } = await parley(site, ['demo', '--keep'], { env: { TMPDIR: site.root } });
  expect(code).toBe(0);
  const data = /kept in (\S+): parley show last --data/.exec(stdout)?.[1] ?? '';
  expect((await parley(site, ['show', 'last', '--data', data])).stdout).toMatch(/status +succeeded, turn 2/);
});

test('an unbuilt program prints how to build it', async () => {
  const site = createSite();
  const bin = join(site.root, 'copy', 'bin');
  mkdirSync(bin, { recursive: true });
  const { stdout: source } = await promisify(execFile)('cat', [BUILT]);
  writeFileSync(join(bin, 'parley.mjs'), source);
  await expect(promisify(execFile)(process.execPath, [join(bin, 'parley.mjs')])).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringContaining('npm ci && npm run build') as string,
  });
});

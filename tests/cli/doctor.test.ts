// parley doctor and the programs it probes: those that do not end, that leave children, that fail, that write, that
// cannot resume.
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { doctorCommand } from '../../src/cli/administration/doctor.js';
import type { Io } from '../../src/cli/io.js';
import { readRow } from '../../src/process/process-table.js';
import { createIo } from '../support/io.js';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'parley-doctor-'));
  mkdirSync(join(root, 'home'));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

interface Finding {
  readonly name: string;
  readonly level: string;
  readonly text: string;
}

const HELP = 'Usage: codex exec resume [OPTIONS] [SESSION_ID] [PROMPT]';

// A codex whose script starts with this; $1 is the argument.
async function doctor(
  script: string,
  { limitMs = 60_000, env = {}, ...changes }: Partial<Io> & { limitMs?: number } = {},
): Promise<{ code: number; codex: Finding | undefined }> {
  const program = join(root, 'codex');
  writeFileSync(program, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  const stdout = new PassThrough();
  const printed: Buffer[] = [];
  stdout.on('data', (chunk: Buffer) => printed.push(chunk));
  const io = createIo({ stdin: Readable.from([]), stdout, stderr: new PassThrough() }, changes);
  const machine = { ...io.machine, home: join(root, 'home') };
  const code = await doctorCommand(
    { data: join(root, 'data'), json: true },
    { ...io, machine, env: { PATH: '/usr/bin:/bin', HOME: machine.home, PARLEY_CODEX_BIN: program, ...env } },
    limitMs,
  );
  const text = Buffer.concat(printed).toString();
  const findings = text === '' ? [] : (JSON.parse(text) as { findings: Finding[] }).findings;
  return { code, codex: findings.find(({ name }) => name === 'codex') };
}

const pidIn = (name: string) => Number(readFileSync(join(root, name), 'utf8'));
// A zombie counts as exited.
const isGone = (pid: number) => readRow(pid) === null;

test('a program that hangs and ignores SIGTERM is killed, and reported differently from a missing one', async () => {
  const { codex } = await doctor(`trap '' TERM; echo $$ > ${root}/pid; while :; do sleep 60; done`, { limitMs: 1000 });
  expect(codex).toMatchObject({
    level: 'note',
    text: expect.stringContaining('codex --version does not answer within 1 s') as string,
  });
  expect(isGone(pidIn('pid'))).toBe(true);
});

test('a program that leaves a child with the pipe open is read, and the child is ended', async () => {
  const { codex } = await doctor(
    `(trap '' TERM; exec sleep 600) & echo $! > ${root}/child; echo codex-cli 0.166.0; echo '${HELP}'`,
  );
  expect(codex?.text).toContain('0.166.0');
  expect(isGone(pidIn('child'))).toBe(true);
});

test('a failing program is reported with its code and the first line of its message', async () => {
  const { codex } = await doctor('echo >&2; echo "no such library: libz" >&2; echo more >&2; exit 3');
  expect(codex).toMatchObject({
    level: 'note',
    text: expect.stringMatching(/codex --version ended with code 3: no such library: libz(;|$)/) as string,
  });
});

test('a program that prints without end is stopped', async () => {
  const { codex } = await doctor('exec yes');
  expect(codex?.text).toContain('codex --version prints without end');
});

test('a file that is not a program is reported as such', async () => {
  const { codex } = await doctor('', { env: { PARLEY_CODEX_BIN: join(root, 'gone') } });
  expect(codex).toMatchObject({
    level: 'missing',
    text: expect.stringMatching(/gone is not a program; codex not found: npm install/) as string,
  });
});

test('files a program writes to its home, temp and work folders are deleted; the user home is untouched', async () => {
  const script =
    'for d in "$HOME" "$CODEX_HOME" "$TMPDIR" .; do mkdir -p "$d" && echo x > "$d/written"; done; ' +
    `echo "$HOME" >> ${root}/homes; echo codex-cli 0.166.0; echo '${HELP}'`;
  const { codex } = await doctor(script, { env: { CODEX_HOME: join(root, 'home', 'own') } });
  expect(codex?.text).toContain('can continue conversations');
  expect(readdirSync(join(root, 'home'))).toEqual([]);
  const homes = readFileSync(join(root, 'homes'), 'utf8').trim().split('\n');
  // Version and help, once for each of the two engines that this program is.
  expect(homes).toHaveLength(4);
  for (const home of homes) expect(existsSync(home)).toBe(false);
});

test('a shim that finds its program by HOME is asked again as a run would start it', async () => {
  writeFileSync(join(root, 'home', '.tool-versions'), 'codex 0.166.0\n');
  const { codex } = await doctor(
    '[ -f "$HOME/.tool-versions" ] || { echo "no version is set" >&2; exit 126; }; echo codex-cli 0.166.0; echo ' +
      `'${HELP}'`,
  );
  expect(codex?.text).toContain('0.166.0 (');
  expect(codex?.text).toContain('can continue conversations');
});

test('a version without resume and one with a broken help are reported', async () => {
  const old = await doctor('echo codex-cli 0.166.0');
  expect(old.codex).toMatchObject({
    level: 'note',
    text: expect.stringMatching(
      /it cannot continue conversations: \S+codex exec resume --help does not show how/,
    ) as string,
  });
  const broken = await doctor('[ "$1" = --version ] || exit 2; echo codex-cli 0.166.0');
  expect(broken.codex?.text).toMatch(
    /whether it can continue conversations is not known: \S+codex exec resume --help ended with code 2/,
  );
});

test('Ctrl-C ends the program that is being asked, and the command', async () => {
  const interrupts: (() => void)[] = [];
  const asked = doctor(`trap '' TERM; echo $$ > ${root}/pid; while :; do sleep 60; done`, {
    onSignal: (signal, handler) => {
      if (signal === 'SIGINT') interrupts.push(handler);
      return () => {};
    },
  });
  while (!existsSync(join(root, 'pid')) || readFileSync(join(root, 'pid'), 'utf8') === '')
    await new Promise((resolve) => setImmediate(resolve));
  for (const interrupt of interrupts) interrupt();
  expect((await asked).code).toBe(130);
  expect(isGone(pidIn('pid'))).toBe(true);
});

test.each([
  [
    'a provider without a key',
    'model_provider = "local"\n[model_providers.local]\nbase_url = "http://127.0.0.1:1"\n',
    {},
    true,
  ],
  ['a model of this machine', 'model_provider = "ollama"\n', {}, true],
  [
    'a provider whose key is there',
    'model_provider = "p"\n[model_providers.p]\nenv_key = "P_KEY"\n',
    { P_KEY: 'k' },
    true,
  ],
  ['a provider whose key is not there', 'model_provider = "p"\n[model_providers.p]\nenv_key = "P_KEY"\n', {}, false],
  [
    'a provider that uses the login',
    'model_provider = "p"\n[model_providers.p]\nrequires_openai_auth = true\n',
    {},
    false,
  ],
  ['settings that are not TOML', 'model_provider = ', {}, false],
])('codex with %s is distinguished from one that is not logged in', async (_what, config, env, isFine) => {
  mkdirSync(join(root, 'home', '.codex'), { recursive: true });
  writeFileSync(join(root, 'home', '.codex', 'config.toml'), config);
  const { codex } = await doctor(`[ "$1" = --version ] && echo "codex-cli 0.166.0" || echo "${HELP}"`, {
    env: { ...env },
  });
  expect(codex?.text.includes('not logged in')).toBe(!isFine);
  if (isFine) expect(codex?.level).toBe('ok');
});

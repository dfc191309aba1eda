// The command line with implausible arguments, settings and databases: a documented exit code, a sentence or two on
// stderr, never a stack trace.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runCli } from '../../src/cli/program.js';
import { codexSettings } from '../../src/engines/codex/settings-file.js';
import { parseToml } from '../../src/engines/codex/toml.js';
import { readSettings } from '../../src/settings/read-settings.js';
import { RequestError } from '../../src/run/request-error.js';
import { openDatabase } from '../../src/store/sqlite/open-database.js';
import { damage } from '../support/damaged-streams.js';
import { fuzz, PATIENCE_MS, pick, times, type Random } from '../support/fuzz.js';
import { createIo } from '../support/io.js';
import { mutateJson, toJsonText } from '../support/json-mutations.js';
import { copyNewest, keptRun, NEWEST_KEPT } from '../support/old-databases.js';
import { seededRandom } from '../support/seeded-random.js';

let root: string;
let data: string;
const RUN = keptRun(NEWEST_KEPT);
beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'parley-fuzz-cli-'));
  data = join(root, 'data');
  mkdirSync(data);
  await copyNewest(join(data, 'parley.db'));
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

// Commands that only read, or are refused; other tests cover those that start work or never end.
const COMMANDS = [
  'ls',
  'show',
  'logs',
  'verify',
  'replay',
  'parse',
  'doctor',
  'contract',
  'completion',
  'token',
  'rm',
  'help',
  'import',
  'compact',
  'migrate',
  'work',
  'nonsense',
];
const WORDS = [
  RUN,
  'last',
  'run_',
  '--',
  '-',
  '',
  ' ',
  '--json',
  '--all',
  '--help',
  '-h',
  '--version',
  '--limit',
  '-n',
  '5',
  '-5',
  '1e9',
  '--status',
  'waiting_user',
  '--label',
  'a=b',
  '=',
  '--engine',
  'codex',
  '--exit',
  'SIGKILL',
  '256',
  '--mode',
  'auto',
  '--stats',
  '--fcmp',
  '--attempt',
  '0',
  '99',
  '--stream',
  'stderr',
  '--from',
  '--to',
  '--data',
  '/nonexistent/\0x',
  '/dev/null',
  '../..',
  'ls',
  'add',
  'rm',
  'bash',
  '--role',
  'viewer',
  '__proto__',
  'constructor',
  '\u001b[2J',
  '\u202e',
  'é漢字',
  'x'.repeat(5000),
  '--stderr',
  '/etc/hostname',
  '--schema',
  '--unknown',
  '-qqq',
  '%s',
];

async function run(args: readonly string[], random: Random): Promise<{ code: number; stderr: string }> {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const chunks: Buffer[] = [];
  stdout.resume();
  stderr.on('data', (chunk: Buffer) => chunks.push(chunk));
  const input = pick(random, ['', '{"type":"turn.started"}\n', '\0\xff', 'x'.repeat(10_000)]);
  const io = createIo(
    { stdin: Readable.from([Buffer.from(input, 'latin1')], { objectMode: false }), stdout, stderr },
    { env: { PARLEY_DATA: data, HOME: root, PATH: '/nonexistent' }, cwd: root },
  );
  const code = await runCli(args, io);
  return { code, stderr: Buffer.concat(chunks).toString('utf8') };
}

async function expectTold(args: readonly string[], random: Random): Promise<void> {
  const { code, stderr } = await run(args, random);
  expect([0, 1, 2, 3, 4], stderr).toContain(code);
  expect(stderr).not.toMatch(/\n {4}at |node_modules|internal error/);
  if (code === 2) expect(stderr).not.toBe('');
  // A command that only has subcommands shows them.
  if (!stderr.startsWith('Usage: '))
    expect(stderr.trimEnd().split('\n').length, stderr.slice(0, 500)).toBeLessThanOrEqual(4);
}

test(
  'arguments in any order and number',
  async () => {
    await fuzz('arguments', 120, async (random) => {
      const args = [pick(random, COMMANDS), ...times(random(5), () => pick(random, WORDS))];
      try {
        await expectTold(args, random);
      } catch (error) {
        if (error instanceof Error) error.message = `parley ${JSON.stringify(args).slice(0, 600)}: ${error.message}`;
        throw error;
      }
    });
  },
  PATIENCE_MS,
);

test(
  'every command that reads a damaged database reports it in one sentence',
  async () => {
    const bytes = readFileSync(join(data, 'parley.db'));
    await fuzz('damaged database', 12, async (random, index) => {
      const damaged = join(root, `damaged-${index}`);
      mkdirSync(damaged);
      const copy = Buffer.from(bytes);
      const page = 4096 * (1 + random(copy.length / 4096 - 1));
      writeFileSync(join(damaged, 'parley.db'), copy.fill(random(256), page, page + 4096));
      for (const args of [['ls'], ['show', RUN], ['verify', RUN], ['logs', RUN], ['doctor']])
        await expectTold([...args, '--data', damaged], random);
      rmSync(damaged, { recursive: true });
    });
  },
  PATIENCE_MS,
);

test.each([
  ['zeros', 'zeroblob(length(body))'],
  ['nothing', "x''"],
  ['text', "CAST('no JSON' AS BLOB)"],
  ['lines that are none', "CAST(replace(CAST(body AS TEXT), '{', '(') AS BLOB)"],
  ['fewer lines', 'substr(body, 1, 1000)'],
])('a journal that contains %s is reported in one sentence', async (what, body) => {
  const damaged = join(root, `journal of ${what}`);
  mkdirSync(damaged);
  await copyNewest(join(damaged, 'parley.db'));
  const db = await openDatabase(join(damaged, 'parley.db'));
  db.exec(`UPDATE segments SET body = ${body}`);
  db.close();
  for (const args of [['ls'], ['show', RUN], ['show', RUN, '--json'], ['verify', RUN], ['replay', RUN], ['doctor']])
    await expectTold([...args, '--data', damaged], seededRandom(1));
});

const SETTINGS = {
  engines: { codex: { bin: '/opt/codex' } },
  env_passthrough: ['A'],
  slots: 2,
  queue_limit: 10,
  recovery: { queued: 'fail' },
  workspace_roots: ['/w'],
  allowed_hosts: ['a:1'],
  max_streams: 5,
  shutdown_grace_sec: 1,
  webhooks: [{ name: 'chat', url: 'https://example.org/x', secret_env: 'S', events: ['failed'] }],
  sessions: { sticky: true, park_after_sec: 1, max_resident: 1 },
  cluster: { files: 'host', lease_sec: 5, gone_sec: 9, connections: 3, url: 'http://h' },
  retention: { ended_after_days: 1, max_bytes: 1000 },
};

test(
  'settings that are damaged are refused with the file and the reason, or are good',
  async () => {
    await fuzz('settings', 200, (random, index) => {
      const dir = join(root, `settings-${index}`);
      mkdirSync(dir);
      const text =
        random(3) === 0
          ? damage(Buffer.from(JSON.stringify(SETTINGS, null, 1)), random, [Buffer.from('{}')], 2)
          : toJsonText(mutateJson(SETTINGS, random));
      writeFileSync(join(dir, 'config.json'), text);
      try {
        expect(readSettings(dir)).toMatchObject({ sessions: {}, cluster: {} });
      } catch (error) {
        expect(error, String(text).slice(0, 500)).toBeInstanceOf(RequestError);
        const { code, message } = error as RequestError;
        expect(code).toBe('INVALID_ARGUMENT');
        expect(message).toContain(join(dir, 'config.json'));
      }
      rmSync(dir, { recursive: true });
    });
  },
  PATIENCE_MS,
);

const TOML =
  'model = "o3"\nn = 1_000\nwhen = 2026-01-01T00:00:00Z\nlist = [1, [2, "x"], {a = ' +
  '1}]\n[projects."/w"]\ntrust_level = "trusted"\n[shell_environment_policy]\nexclude = ' +
  '["A*"]\n[mcp_servers.x]\ncommand = "c"\nargs = []\n[[hooks]]\na.b."c d" = 1.5\n';
const ODD = [
  '__proto__ = 1\n',
  '"" = ""\n',
  'x = nan\n',
  'x = -inf\n',
  'projects = 5\n',
  'shell_environment_policy = []\n',
  '[projects]\n"/w" = 1\n',
  'x = 9223372036854775807\n',
  `x = ${'['.repeat(500)}${']'.repeat(500)}\n`,
  '\u0000',
  '\ufeff',
  'x = "\n',
].map((text) => Buffer.from(text));

test(
  "the user's settings of Codex, damaged: not TOML, or TOML again with the overrides",
  async () => {
    await fuzz('codex settings', 300, (random) => {
      const text = Buffer.concat([
        pick(random, [Buffer.alloc(0), pick(random, ODD)]),
        damage(Buffer.from(TOML), random, ODD, 3),
      ]).toString('utf8');
      const settings = codexSettings(text, {
        cwd: pick(random, ['/w', '/x', '__proto__', '']),
        project: '/w',
        permission: 'workspace-write',
      } as Parameters<typeof codexSettings>[1]);
      if (settings === null) expect(parseToml(text)).toBeNull();
      else
        expect(parseToml(settings), settings).toMatchObject({
          shell_environment_policy: { exclude: expect.arrayContaining(['*KEY*']) as unknown },
        });
    });
  },
  PATIENCE_MS,
);

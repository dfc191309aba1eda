// Mistakes before anything starts: each is reported in one sentence with a way out, and nothing is partly written.
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { openDatabase } from '../../../src/store/sqlite/open-database.js';
import { createSite, expectLines, listRuns, parley, type Site } from '../../support/command.js';

type Mistake = readonly [name: string, args: readonly string[], code: number, told: string | RegExp];

// Nothing may be stored by any of them.
const REFUSED: readonly Mistake[] = [
  ['a command that does not exist', ['runn', 'codex', 'hi'], 2, 'There is no command "runn". Did you mean "run"?\n'],
  ['no prompt', ['run', 'rehearsal'], 2, /The argument "prompt" is missing\.\nRun `parley run --help` for usage\./],
  ['an empty prompt', ['run', 'rehearsal', '  '], 2, 'The prompt is empty'],
  ['an empty prompt from stdin', ['run', 'rehearsal', '-'], 2, 'The prompt is empty'],
  [
    'a prompt without quotes',
    ['run', 'rehearsal', 'fix', 'the', 'build'],
    2,
    /"run" takes 2 arguments, not 4\.[^]*The prompt is one argument: put it in quotes/,
  ],
  [
    'an engine without the command',
    ['codex', 'fix the build'],
    2,
    /There is no command "codex"\.[^]*\(Did you mean parley run codex\?\)/,
  ],
  [
    'an unknown engine',
    ['run', 'cursor', 'hi'],
    2,
    /The engines are claude, codex, codex-app-server, gemini, iflow, opencode, rehearsal\.\n {2}parley doctor/,
  ],
  [
    'a folder that is not there',
    ['run', 'rehearsal', 'hi', '--cwd', 'nowhere'],
    2,
    /The folder \S+nowhere does not exist\./,
  ],
  ['a folder that is a file', ['run', 'rehearsal', 'hi', '--cwd', 'file.json'], 2, 'is not a directory'],
  [
    'a folder and a folder of its own',
    ['run', 'rehearsal', 'hi', '--cwd', '.', '--scratch'],
    2,
    '--scratch cannot be used with -C, --cwd <dir>.',
  ],
  [
    'a schema that is not there',
    ['run', 'rehearsal', 'hi', '--schema', 'none.json'],
    2,
    'The schema "none.json" cannot be read',
  ],
  [
    'a schema that is not JSON',
    ['run', 'rehearsal', 'hi', '--schema', 'torn.json'],
    2,
    'The schema "torn.json" is not a JSON object.',
  ],
  [
    'a schema that is no schema',
    ['run', 'rehearsal', 'hi', '--schema', 'file.json'],
    2,
    'output_schema cannot be used',
  ],
  [
    'an option without a value',
    ['run', 'rehearsal', 'hi', '-o', 'max_attempt'],
    2,
    '--option takes name=value, not "max_attempt".',
  ],
  [
    'an option that does not exist',
    ['run', 'rehearsal', 'hi', '-o', 'max_attempts=3'],
    2,
    /There is no runtime option "max_attempts"\. Did you mean "max_attempt"\? The options are .*max_attempt/,
  ],
  [
    'an option of the wrong kind',
    ['run', 'rehearsal', 'hi', '-o', 'max_attempt=many'],
    2,
    'Runtime option max_attempt cannot be "many"',
  ],
  ['a label without a name', ['run', 'rehearsal', 'hi', '-l', '=x'], 2, '--label takes name=value'],
  [
    'a permission that does not exist',
    ['run', 'rehearsal', 'hi', '-p', 'root'],
    2,
    'cannot be "root": it takes read-only, workspace-write, full.',
  ],
  ['a run that does not exist', ['show', 'run_01ABC'], 1, 'There is no run "run_01ABC"'],
  ['the last run, where there is none', ['reply', 'last', 'yes'], 1, 'There is no run "last": there are no runs in '],
  ['a status that does not exist', ['ls', '--status', 'waiting'], 2, /The statuses are queued, running, waiting_user/],
  ['a count that is none', ['ls', '-n', 'many'], 2, 'Give a whole number.'],
  ['verify without a run', ['verify'], 2, 'Name a run or give --all, not both.'],
  ['a shell that is not known', ['completion', 'tcsh'], 2, 'The shells are bash, zsh, fish.'],
  ['a recording without an engine', ['parse'], 2, 'Name the engine that printed the output: --engine claude|'],
  ['the worker by hand', ['work'], 2, 'not by hand'],
];

function createMistakenSite(): Site {
  const site = createSite();
  writeFileSync(join(site.cwd, 'file.json'), '{"type":"nothing"}');
  writeFileSync(join(site.cwd, 'torn.json'), '{');
  return site;
}

async function expectNothingStored(site: Site): Promise<void> {
  if (existsSync(join(site.data, 'parley.db'))) expect(await listRuns(site)).toEqual([]);
  expect(existsSync(join(site.data, 'runs')) ? readdirSync(join(site.data, 'runs')) : []).toEqual([]);
}

test('each is refused with its exit code and a message on stderr, as text and JSON; nothing is stored', async () => {
  const site = createMistakenSite();
  const check = async ([name, args, code, message]: Mistake, index: number): Promise<void> => {
    // A separate directory for each, because some of them create one.
    const data = join(site.root, `data-${index}`);
    const asJson = !['completion', 'parse', 'work', 'runn', 'codex'].includes(args[0] ?? '');
    const env = { PARLEY_DATA: data };
    const plain = await parley(site, args, { env });
    expect({ name, code: plain.code, stdout: plain.stdout }).toEqual({ name, code, stdout: '' });
    if (typeof message === 'string') expect(plain.stderr, name).toContain(message);
    else expect(plain.stderr, name).toMatch(message);
    expect(plain.stderr).not.toMatch(/\bat .*\.js:\d/);
    if (asJson && index % 2 === 0) {
      const json = await parley(site, [...args, '--json'], { env });
      expect({ name, code: json.code, stdout: json.stdout, lines: expectLines(json.stderr).length }).toEqual({
        name,
        code,
        stdout: '',
        lines: 1,
      });
    }
    await expectNothingStored({ ...site, data });
  };
  const waiting = [...REFUSED.entries()];
  const work = async (): Promise<void> => {
    for (let next = waiting.shift(); next; next = waiting.shift()) await check(next[1], next[0]);
  };
  await Promise.all([work(), work()]);
});

test('an engine that is not installed: a forced run fails with its code and says how to install it', async () => {
  const site = createSite();
  const env = { PATH: '/nowhere', PARLEY_CODEX_BIN: '' };
  const { code, stdout, stderr } = await parley(site, ['run', 'codex', 'hi', '--force'], { env });
  expect(code).toBe(1);
  expect(stdout).toMatch(/✗ failed: ENGINE_NOT_FOUND\n {2}codex not found: npm install -g @openai\/codex/);
  expect(stderr).toMatch(/^parley doctor lists .*\nRetry: parley retry run_/);
  const doctor = await parley(site, ['doctor'], { env: { ...env, PARLEY_GEMINI_BIN: '/nowhere/gemini' } });
  expect(doctor.code).toBe(0);
  expect(doctor.stdout).toMatch(/– codex +codex not found: npm install/);
  expect(doctor.stdout).toMatch(/– gemini +PARLEY_GEMINI_BIN=\/nowhere\/gemini is not a program/);
});

test('an agent that asks in auto mode fails its run, and the message explains how to allow it', async () => {
  const { code, stdout, stderr } = await parley(createSite(), ['run', 'rehearsal', '[[ask Which?|A|B]]']);
  expect({ code, told: stdout.includes('AUTO_MODE_CANNOT_ASK') }).toEqual({ code: 1, told: true });
  expect(stderr).toMatch(/^The run was unattended\. Start it again with --interactive \(-i\)/);
});

describe('every command reports an unusable data directory with exit code 1', () => {
  const COMMANDS = [['ls'], ['show', 'last'], ['run', 'rehearsal', 'hi'], ['doctor']] as const;

  async function expectTold(site: Site, data: string, message: string | RegExp): Promise<void> {
    await Promise.all(
      COMMANDS.map(async (args) => {
        const { code, stdout, stderr } = await parley(site, [...args, '--data', data]);
        expect(code, `${args.join(' ')}: ${stdout}${stderr}`).toBe(1);
        expect(args[0] === 'doctor' ? stdout : stderr).toMatch(message);
      }),
    );
  }

  test('because it is a file', async () => {
    const site = createSite();
    writeFileSync(join(site.root, 'file'), 'mine');
    await expectTold(site, join(site.root, 'file'), /is not a (?:folder|directory)/);
    expect(readFileSync(join(site.root, 'file'), 'utf8')).toBe('mine');
  });

  test('because it cannot be made', async () => {
    const { code, stderr } = await parley(createSite(), ['run', 'rehearsal', 'hi', '--data', '/proc/parley/data']);
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr:
        'parley: The data directory /proc/parley cannot be created: it does not exist\n' +
        '  parley doctor explains more. Choose another directory with --data or PARLEY_DATA.\n',
    });
  });

  test('because its database is something else', async () => {
    const site = createSite();
    mkdirSync(site.data);
    writeFileSync(join(site.data, 'parley.db'), 'garbage, and more of it');
    await expectTold(site, site.data, /file is not a database/);
    expect(readFileSync(join(site.data, 'parley.db'), 'utf8')).toBe('garbage, and more of it');
  });

  test('because a later Parley wrote it; it is not touched', async () => {
    const site = createSite();
    expect((await parley(site, ['run', 'rehearsal', '[[done 1]]'])).code).toBe(0);
    const db = await openDatabase(join(site.data, 'parley.db'));
    db.exec('PRAGMA user_version = 999; PRAGMA wal_checkpoint(TRUNCATE)');
    db.close();
    const before = readFileSync(join(site.data, 'parley.db'));
    await expectTold(site, site.data, /999|later|newer/);
    expect(readFileSync(join(site.data, 'parley.db')).equals(before)).toBe(true);
  });
});

test.each([
  ['{"slots":', /config\.json is not JSON/],
  ['{"slot":3}', /config\.json: There is no setting "slot"\. Did you mean "slots"\?/],
  ['{"slots":"many"}', /config\.json: .*slots cannot be "many": it takes a whole number/],
  ['{"env_passthrough":["A B"]}', /config\.json: .*env_passthrough\[0\] cannot be "A B"/],
])('a broken config.json (%s) is reported before anything is written, and by doctor', async (text, message) => {
  const site = createSite();
  mkdirSync(site.data);
  writeFileSync(join(site.data, 'config.json'), text);
  const { code, stderr } = await parley(site, ['run', 'rehearsal', 'hi']);
  expect(code).toBe(2);
  expect(stderr).toMatch(message);
  expect(readdirSync(site.data)).toEqual(['config.json']);
  const doctor = await parley(site, ['doctor']);
  expect(doctor.code).toBe(1);
  expect(doctor.stdout).toMatch(message);
  // Commands that only read need none of it.
  expect((await parley(site, ['ls', '-q'])).code).toBe(0);
});

test('work that cannot start for an unexpected reason is reported, and nothing waits for ever', async () => {
  const site = createSite();
  mkdirSync(site.data, { recursive: true });
  writeFileSync(join(site.data, 'runs'), 'a file where the folder of the runs should be');
  const { code, stderr } = await parley(site, ['run', 'rehearsal', 'hi']);
  expect(code).toBe(1);
  expect(stderr).toMatch(
    /^parley: The worker process could not begin: ENOTDIR[^\n]*\. See parley\.log in the data directory\.\n/,
  );
  expect(readFileSync(join(site.data, 'parley.log'), 'utf8')).toContain('ENOTDIR');
});

// The findings and advice of parley doctor for a damaged data directory; the summary of parley verify --all.
import { appendFileSync, cpSync, existsSync, mkdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { verifyCommand } from '../../src/cli/reading/audit.js';
import { createRunCheck } from '../../src/cli/reading/check-run.js';
import { doctorCommand, type Finding } from '../../src/cli/administration/doctor.js';
import { findDamage } from '../../src/cli/administration/find-damage.js';
import type { Io } from '../../src/cli/io.js';
import { runFolder } from '../../src/journal/run-folder.js';
import { openForReading } from '../../src/store/sqlite/data-dir.js';
import { capture, type Captured } from '../support/capture.js';
import { openDatabase } from '../../src/store/sqlite/open-database.js';
import { createSite, parley } from '../support/command.js';
import { createRoot, openBench } from '../support/orchestrated.js';

// A data directory with two ended runs.
async function twoRuns(): Promise<{ data: string; ids: readonly [string, string] }> {
  const root = createRoot();
  const bench = await openBench(root);
  const ids: string[] = [];
  for (const answer of [1, 2]) {
    const { run_id: id } = await bench.orchestrator.create({ engine: 'codex', prompt: `[[answer ${answer}]]` });
    await bench.orchestrator.waitUntilIdle(id);
    ids.push(id);
  }
  await bench.close();
  return { data: join(root, 'data'), ids: ids as unknown as [string, string] };
}

// Moves everything into parley.db itself. The driver keeps a closed database open until its statements are collected,
// and the last one to close it writes the log into the file: a test's change to the original may be undone.
async function copyOf(data: string): Promise<string> {
  const copy = join(createRoot(), 'data');
  cpSync(data, copy, { recursive: true });
  const db = await openDatabase(join(copy, 'parley.db'));
  db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  db.close();
  return copy;
}

const doctor = (data: string, full = false, env: Record<string, string> = {}): Promise<Captured> =>
  capture((io) => doctorCommand({ data, full }, io), { env });

test('a data directory without damage passes, also in full', async () => {
  const { data } = await twoRuns();
  for (const full of [false, true])
    expect(await doctor(data, full)).toMatchObject({ code: 0, stdout: expect.not.stringContaining('✗') as string });
  expect((await doctor(data, true)).stdout).toContain(
    '✓ damage           none found: checked all 2 runs with their journals and files',
  );
});

test('doctor finds a damaged group of recent events, whose runs cannot be named', async () => {
  const { data } = await twoRuns();
  const db = await openDatabase(join(data, 'parley.db'));
  db.exec("INSERT INTO event_groups VALUES (99, x'00ff', 7)");
  db.close();
  const { code, stdout } = await doctor(data);
  expect(code).toBe(1);
  expect(stdout).toContain('✗ damage           events of running turns are damaged: group 99 of recent events');
});

test('doctor finds wrong totals, and --recount repairs them', async () => {
  const { data } = await twoRuns();
  const db = await openDatabase(join(data, 'parley.db'));
  db.exec("UPDATE totals SET count = 7 WHERE measure = 'succeeded'; DELETE FROM totals WHERE measure = 'turns'");
  db.close();
  const { code, stdout } = await doctor(data);
  expect(code).toBe(1);
  expect(stdout).toMatch(/✗ totals +totals of the metrics differ from the stored runs: runs succeeded: 7 instead of 2/);
  expect(stdout).toContain('turns codex codex_ndjson turns: 0 instead of 2');
  const repaired = await capture((io) => doctorCommand({ data, recount: true }, io));
  expect(repaired).toMatchObject({ code: 0, stdout: expect.not.stringContaining('totals') as string });
  expect(await doctor(data)).toMatchObject({ code: 0 });
});

test('doctor --recount creates no data directory', async () => {
  const data = join(createRoot(), 'none');
  await capture((io) => doctorCommand({ data, recount: true }, io));
  expect(existsSync(data)).toBe(false);
});

test.each([
  ['a folder that was deleted', (folder: string) => rmSync(folder, { recursive: true })],
  ['a log that was changed', (folder: string) => appendFileSync(join(folder, 'attempts', '1', 'stdout.log'), 'x')],
  ['a journal file that was changed', (folder: string) => appendFileSync(join(folder, 'rasp.jsonl'), 'x')],
])('doctor --full finds %s, as verify does', async (_what, alter) => {
  const {
    data,
    ids: [first],
  } = await twoRuns();
  alter(runFolder(data, first).path);
  expect((await capture((io) => verifyCommand(first, { data }, io))).code).toBe(1);
  const report = await doctor(data, true);
  expect([report.code, report.stdout]).toEqual([
    1,
    expect.stringMatching(`✗ damage +1 of 2 runs are damaged: ${first} \\(\\w+: `),
  ]);
});

test('a large run is checked in its own process; one that cannot be checked is named, not called damaged', async () => {
  const {
    data,
    ids: [first, second],
  } = await twoRuns();
  appendFileSync(runFolder(data, first).attempt(1).logs.stdout, 'x');
  const find = async (entry: string): Promise<Finding[]> => {
    const machine = { node: process.execPath, entry } as Io['machine'];
    const opened = await openForReading(data);
    if (!opened) throw new Error('no database');
    let findings: Finding[] = [];
    await capture(async (io) => {
      findings = await findDamage(opened.store, {
        full: true,
        monotonicMs: () => 0,
        checkRun: createRunCheck(data, { ...io, machine }, 0),
      });
      return 0;
    });
    await opened.close();
    return findings;
  };
  expect(await find(new URL('../../bin/parley.js', import.meta.url).pathname)).toEqual([
    {
      name: 'damage',
      level: 'missing',
      text: expect.stringMatching(`1 of 2 runs are damaged: ${first} \\(hashes: `) as string,
    },
  ]);
  const unchecked = await find('/nowhere/parley.js');
  expect(unchecked.map(({ name, level }) => [name, level])).toEqual([
    ['damage', 'ok'],
    ['unchecked', 'note'],
    ['unchecked', 'note'],
  ]);
  for (const [index, id] of [second, first].entries())
    expect(unchecked[index + 1]?.text).toContain(`Run ${id} was not checked`);
});

test('doctor names only commands that exist as ways to save a damaged run', async () => {
  const {
    data,
    ids: [first],
  } = await twoRuns();
  rmSync(runFolder(data, first).path, { recursive: true });
  const { stdout } = await doctor(data, true);
  expect(stdout).not.toMatch(/export/);
  expect(stdout).toMatch(
    /parley show, parley watch --json, parley logs.*GET \/v1\/runs\/ID\/archive.*restore a backup.*parley rm/,
  );
});

test.each([
  ['tokens.json', '{x', /✗ tokens +\S+tokens\.json is not JSON\. .*delete it.*parley token add/],
  ['tokens.json', '[{"name":1}]', /✗ tokens +\S+tokens\.json: .*delete it.*parley token add/],
  ['token', '', /✗ token +\S+token contains no token\. Delete it; the next parley serve creates a new token/],
  ['config.json', '{"slots":', /✗ config +\S+config\.json is not JSON\. Fix it, or delete it to use the defaults/],
])('doctor finds a broken %s (%s) and prints what to do', async (name, text, advice) => {
  const { data } = await twoRuns();
  writeFileSync(join(data, name), text);
  const { code, stdout } = await doctor(data);
  expect([code, stdout]).toEqual([1, expect.stringMatching(advice)]);
});

test('doctor does not look at a token file that PARLEY_TOKEN replaces', async () => {
  const { data } = await twoRuns();
  writeFileSync(join(data, 'token'), '');
  expect(await doctor(data, false, { PARLEY_TOKEN: 'x'.repeat(40) })).toMatchObject({
    code: 0,
    stdout: expect.not.stringContaining('✗') as string,
  });
});

test.each([
  ['no parley.db', (path: string) => rmSync(path)],
  ['parley.db is empty', (path: string) => truncateSync(path, 0)],
])('doctor reports run folders without a database: %s', async (message, remove) => {
  const data = await copyOf((await twoRuns()).data);
  remove(join(data, 'parley.db'));
  const { code, stdout } = await doctor(data);
  expect([code, stdout]).toEqual([
    1,
    expect.stringMatching(`✗ data .*2 run folders, but ${message}.*restore parley\\.db from a backup`),
  ]);
});

test('a directory that has no runs yet is no damage', async () => {
  const data = join(createRoot(), 'data');
  mkdirSync(join(data, 'runs'), { recursive: true });
  expect(await doctor(data)).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('(nothing there yet)') as string,
  });
});

test.each([
  [
    'something else',
    (path: string) => writeFileSync(path, 'garbage, and more of it'),
    new RegExp(
      'parley\\.db is not a database, or its beginning was overwritten\\. ' +
        '.*restore parley\\.db from a backup .*\\(SQLite: file is not a database\\)',
    ),
  ],
  [
    'cut off',
    // All but the first page: the schema names tables that are gone.
    (path: string) => truncateSync(path, 4096),
    /parley\.db is damaged: .*restore parley\.db from a backup .*\(SQLite: database disk image is malformed\)/,
  ],
])('a database that is %s is explained by every command, with a way out', async (_what, alter, message) => {
  const data = await copyOf((await twoRuns()).data);
  alter(join(data, 'parley.db'));
  const site = createSite();
  for (const args of [['ls'], ['verify', '--all'], ['doctor']]) {
    const { code, stdout, stderr } = await parley(site, [...args, '--data', data]);
    expect([args, code, stdout + stderr]).toEqual([args, 1, expect.stringMatching(message)]);
  }
});

test('a lock.db that is no database is explained, with a way out', async () => {
  const { data } = await twoRuns();
  writeFileSync(join(data, 'lock.db'), 'garbage, and more of it');
  const { code, stderr } = await parley(createSite(), ['run', 'rehearsal', 'hi', '--data', data]);
  expect([code, stderr]).toEqual([1, expect.stringMatching(/lock\.db is damaged\. .*delete it/)]);
});

test('verify --all ends with a summary for people, and not in JSON', async () => {
  const {
    data,
    ids: [first],
  } = await twoRuns();
  const verify = (json: boolean): Promise<Captured> =>
    capture((io) => verifyCommand(undefined, { data, all: true, json }, io));
  expect(await verify(false)).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/\n2 runs checked: all intact\.\n$/) as string,
  });
  rmSync(runFolder(data, first).path, { recursive: true });
  expect(await verify(false)).toMatchObject({
    code: 1,
    stdout: expect.stringMatching(/\n2 runs checked: 1 intact, 1 altered\.\n$/) as string,
  });
  for (const line of (await verify(true)).stdout.trimEnd().split('\n'))
    expect(JSON.parse(line)).toMatchObject({ type: 'verified' });
});

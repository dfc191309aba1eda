// Creates the databases of tests/old-databases: each with the program of the last commit that wrote its version, built
// from the history and used as a person would use it. They are kept in the repository, because today's migrations
// cannot prove by themselves that they fit data that old versions really wrote. Needed again only for a new version:
// add a line with the last commit before it, and call `node scripts/make-old-databases.mjs VERSION`.
import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

// No change ever left version 1: the first that stored anything came with both steps. Its file has the table of that
// step and no more.
const PROGRAMS = { 2: '3fa48ab', 3: '7e867bd', 4: 'a07d56b', 5: '67e0dd0', 6: '2b17f72', 9: 'fbb2966', 11: '5efaef5' };
const BY_HAND = {
  // The predecessor's.
  0: [
    `CREATE TABLE request_interactive_runtime (
  request_id TEXT PRIMARY KEY, profile_json TEXT, effective_session_timeout_sec INTEGER, session_handle_json TEXT,
  wait_deadline_at TEXT, process_binding_json TEXT, updated_at TEXT)`,
    `('req_1', '{"kind":"resumable"}', 900, '{"handle_value":"h-1"}', '2026-01-01T00:00:00Z', '{"pid":1}', ` +
      `'2026-01-02T00:00:00Z'), ('req_2', NULL, NULL, NULL, NULL, NULL, NULL)`,
  ],
  1: [
    `CREATE TABLE request_interactive_runtime (
  request_id TEXT PRIMARY KEY,
  effective_session_timeout_sec INTEGER NOT NULL,
  session_handle_json TEXT,
  updated_at TEXT NOT NULL
)`,
    `('req_1', 900, '{"handle_value":"h-1"}', '2026-01-02T00:00:00.000Z'), ('req_2', 1200, NULL, ` +
      `'2026-01-02T00:00:00.000Z')`,
  ],
};

const repository = new URL('..', import.meta.url).pathname;
const { DatabaseSync } = createRequire(import.meta.url)('@photostructure/sqlite');
// The same on every machine, because it is part of the stored fixtures.
const work = join(tmpdir(), 'parley-old');

function makeByHand(version, file) {
  const [table, rows] = BY_HAND[version];
  const db = new DatabaseSync(file);
  db.exec(`${table}; INSERT INTO request_interactive_runtime VALUES ${rows}; PRAGMA user_version = ${version}`);
  db.close();
}

function makeByProgram(version, file) {
  const program = join(work, 'program');
  const folder = join(work, 'folder');
  for (const dir of [program, folder, join(work, 'data')]) mkdirSync(dir, { recursive: true, mode: 0o700 });
  execFileSync('tar', ['-x', '-C', program], {
    input: execFileSync('git', ['archive', PROGRAMS[version]], { cwd: repository, maxBuffer: 2 ** 30 }),
  });
  symlinkSync(realpathSync(join(repository, 'node_modules')), join(program, 'node_modules'));
  execFileSync(
    process.execPath,
    [join(program, 'node_modules', 'typescript', 'bin', 'tsc'), '-p', 'tsconfig.build.json'],
    { cwd: program, stdio: 'inherit' },
  );
  // Since version 11 the command is packed.
  const bundle = join('scripts', 'bundle.mjs');
  if (existsSync(join(program, bundle))) execFileSync(process.execPath, [bundle], { cwd: program, stdio: 'inherit' });
  // Version 3 introduced notifications, which are not sent here.
  if (version > 2)
    writeFileSync(
      join(work, 'data', 'config.json'),
      JSON.stringify({ webhooks: [{ name: 'board', url: 'http://127.0.0.1:9/hook', secret_env: 'BOARD_SECRET' }] }),
      { mode: 0o600 },
    );
  const parley = (expected, ...args) => {
    const { status, stdout, stderr } = spawnSync(process.execPath, [join(program, 'bin', 'parley.js'), ...args], {
      cwd: folder,
      encoding: 'utf8',
      env: { PATH: process.env.PATH, HOME: work, PARLEY_DATA: join(work, 'data'), BOARD_SECRET: 'no secret, 16 bytes' },
    });
    if (status !== expected) throw new Error(`parley ${args.join(' ')}: ${status}\n${stdout}${stderr}`);
  };
  const run = (expected, id, prompt, ...more) =>
    parley(expected, 'run', 'rehearsal', prompt, '--request-id', id, '--label', `n=${id}`, ...more);
  // From version 5 on large pieces are packed.
  run(0, 'req_1', `[[answer Hello.]][[events ${version > 4 ? 600 : 12} 200]][[done {"n":1}]]`);
  run(3, 'req_2', '[[answer One moment.]][[ask Which?|a|b]][[done {"n":2}]]', '-i');
  parley(0, 'reply', 'last', 'b');
  run(1, 'req_3', '[[fail]]');
  run(3, 'req_4', '[[ask May I?]][[done {}]]', '-i');
  parley(0, 'cancel', 'last');
  run(3, 'req_5', '[[ask For ever?|yes|no]][[done {}]]', '-i');
  run(3, 'req_6', '[[answer Once.]][[ask First?]][[ask Second?]][[done {}]]', '-i');
  parley(3, 'reply', 'last', 'first');
  // All of it into the one file, once the process that played the last turn has let go of it.
  const db = new DatabaseSync(join(work, 'data', 'parley.db'));
  db.exec('PRAGMA busy_timeout = 30000');
  if (db.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get().busy !== 0)
    throw new Error('somebody still uses the database');
  if (db.prepare('PRAGMA user_version').get().user_version !== version)
    throw new Error(`${PROGRAMS[version]} does not write version ${version}`);
  db.close();
  copyFileSync(join(work, 'data', 'parley.db'), file);
  chmodSync(file, 0o644);
}

for (const version of process.argv.slice(2).map(Number)) {
  rmSync(work, { recursive: true, force: true });
  const folder = join(repository, 'tests', 'old-databases');
  mkdirSync(folder, { recursive: true });
  const file = join(folder, `version-${version}.db`);
  rmSync(file, { force: true });
  (version in BY_HAND ? makeByHand : makeByProgram)(version, file);
  rmSync(work, { recursive: true, force: true });
}

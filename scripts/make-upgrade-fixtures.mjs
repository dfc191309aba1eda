// Makes tests/old-databases/upgrade-N: a data directory and a PostgreSQL database as the previous version leaves them,
// used as a person would and then killed at work (N is the version of its parley.db). Needed again only when another
// version becomes the previous one: change COMMIT, and call `node scripts/make-upgrade-fixtures.mjs
// postgresql://…/DATABASE` with an empty database of a server that the installed pg_dump can read. upgrade-5 was made
// by an earlier form of this script.
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';

const COMMIT = 'fbb2966';
const repository = new URL('..', import.meta.url).pathname;
// The same on every machine, because it is part of the stored fixtures.
const work = join(tmpdir(), 'parley-old');
const program = join(work, 'program');
// The journals name the folder in which the agents work, and a digest protects them: it has to exist wherever the tests
// run.
const FOLDER = '/usr';
const LIMIT_MS = 60_000;
const { DatabaseSync } = createRequire(import.meta.url)('@photostructure/sqlite');
const [databaseUrl] = process.argv.slice(2);
if (databaseUrl === undefined) throw new Error('name an empty PostgreSQL database');

function buildProgram() {
  mkdirSync(program, { recursive: true });
  execFileSync('tar', ['-x', '-C', program], {
    input: execFileSync('git', ['archive', COMMIT], { cwd: repository, maxBuffer: 2 ** 30 }),
  });
  execFileSync('npm', ['ci', '--no-audit', '--no-fund'], { cwd: program, stdio: 'inherit' });
  execFileSync('npx', ['tsc', '-p', 'tsconfig.build.json'], { cwd: program, stdio: 'inherit' });
}

// A person at the previous version, on this data directory.
function createUser(data, env) {
  const standIn = (name) => join(program, 'tests', 'stand-ins', 'bin', name);
  const all = {
    PATH: process.env.PATH,
    HOME: work,
    USER: 'somebody',
    HOSTNAME: 'old-host',
    LANG: 'C.UTF-8',
    PARLEY_DATA: data,
    PARLEY_CODEX_BIN: standIn('codex'),
    PARLEY_CODEX_APP_SERVER_BIN: standIn('codex-app-server-stand-in'),
    BOARD_SECRET: 'no secret, 16 bytes',
    ...env,
  };
  const bin = join(program, 'bin', 'parley.js');
  const parley = (expected, ...args) => {
    const { status, stdout, stderr } = spawnSync(process.execPath, [bin, ...args], {
      cwd: FOLDER,
      encoding: 'utf8',
      env: all,
    });
    if (status !== expected) throw new Error(`parley ${args.join(' ')}: ${status}\n${stdout}${stderr}`);
    return stdout;
  };
  const newest = () => parley(0, 'ls', '-q').trim().split('\n')[0];
  const ids = new Map();
  return {
    parley,
    id: (name) => ids.get(name),
    run: (expected, name, engine, prompt, ...more) => {
      parley(expected, 'run', engine, prompt, '--request-id', name, '--label', `n=${name}`, ...more);
      ids.set(name, newest());
    },
    // A follow-up has no request id of its choice, so the test finds it by its prompt.
    follow: (expected, name, command, source, prompt) => {
      parley(expected, command, ids.get(source), `${prompt} (${name})`);
      ids.set(name, newest());
    },
    until: async (name, status) => {
      for (const end = Date.now() + LIMIT_MS; Date.now() < end; await pause(200))
        if (JSON.parse(parley(0, 'show', ids.get(name), '--json')).run.status === status) return;
      throw new Error(`${name} never was ${status}`);
    },
    serve: async () => {
      const server = spawn(process.execPath, [bin, 'serve', '--port', '0', '--json'], {
        cwd: FOLDER,
        env: all,
        stdio: ['ignore', 'pipe', 'ignore'],
      });
      await once(createInterface(server.stdout), 'line');
      return server;
    },
  };
}

const timeout = (seconds) => ['-i', '-o', `session_timeout_sec=${seconds}`];
const decides = (seconds) => [...timeout(seconds), '-o', 'interactive_require_user_reply=false'];

// Runs in each state. `next-year` would be decided in a year, `in-a-minute` after everything was killed.
async function use(data, env, settings) {
  mkdirSync(data, { recursive: true, mode: 0o700 });
  const hooks = [{ name: 'board', url: 'http://127.0.0.1:9/hook', secret_env: 'BOARD_SECRET' }];
  writeFileSync(join(data, 'config.json'), JSON.stringify({ slots: 1, webhooks: hooks, ...settings }), { mode: 0o600 });
  const { parley, run, follow, until, serve } = createUser(data, env);
  const rehearsal = (expected, name, prompt, ...more) => run(expected, name, 'rehearsal', prompt, ...more);
  if (env.PARLEY_DATABASE_URL) parley(0, 'migrate');
  rehearsal(0, 'finished', '[[answer Hello.]][[done {"n":"finished"}]]');
  rehearsal(3, 'answered', '[[ask Which?|a|b]][[done {"n":"answered"}]]', '-i');
  parley(0, 'reply', 'last', 'b');
  rehearsal(1, 'failed', '[[fail]]');
  rehearsal(3, 'canceled', '[[ask May I?]][[done {}]]', '-i');
  parley(0, 'cancel', 'last');
  rehearsal(3, 'waiting', '[[ask For ever?|yes|no]][[done {"n":"waiting"}]]', '-i');
  rehearsal(3, 'next-year', '[[ask Next year?|yes|no]][[done {"n":"next-year"}]]', ...decides(31_536_000));
  follow(0, 'continued', 'continue', 'answered', '[[done {"n":"continued"}]]');
  follow(3, 'continued-waiting', 'continue', 'answered', '[[ask More?|yes|no]][[done {"n":"continued-waiting"}]]');
  run(3, 'codex-waiting', 'codex', '[[answer Which one?]]', '-i');
  run(0, 'codex', 'codex', '[[done {"n":"codex"}]]');
  follow(0, 'forked', 'fork', 'codex', '[[done {"n":"forked"}]]');
  follow(3, 'forked-waiting', 'fork', 'codex-waiting', '[[answer Which other?]]');
  run(
    3,
    'app-server-waiting',
    'codex-app-server',
    '[[ask Whose?|mine|yours]][[done {"n":"app-server-waiting"}]]',
    '-i',
  );
  // PostgreSQL never stored a fraction of a millisecond: the turn failed.
  if (!env.PARLEY_DATABASE_URL) {
    rehearsal(3, 'fraction', '[[ask Late?|yes|no]][[done {"n":"fraction"}]]', ...timeout(0.0015));
    rehearsal(3, 'fraction-canceled', '[[ask Too late?]][[done {}]]', ...timeout(0.0015));
  }
  parley(0, 'token', 'add', 'ann', '--role', 'replier');
  const server = await serve();
  rehearsal(0, 'decided', '[[ask At once?|yes|no]][[done {"n":"decided"}]]', '-d', ...decides(1));
  await until('decided', 'succeeded');
  rehearsal(0, 'canceled-running', '[[hang]]', '-d');
  await until('canceled-running', 'running');
  parley(0, 'cancel', 'last');
  await until('canceled-running', 'canceled');
  rehearsal(3, 'in-a-minute', '[[ask In a minute?|yes|no]][[done {"n":"in-a-minute"}]]', ...decides(60));
  rehearsal(0, 'running', '[[hang]]', '-d');
  await until('running', 'running');
  rehearsal(0, 'queued', '[[done {"n":"queued"}]]', '-d');
  rehearsal(0, 'queued-interactive', '[[ask Now?|yes|no]][[done {"n":"queued-interactive"}]]', '-i', '-d');
  server.kill('SIGKILL');
  await once(server, 'exit');
  endEngines();
}

// The engines of the killed server are still there.
function endEngines() {
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
      if (command.includes(join(program, 'dist', 'rehearsal', 'main.js')) || command.includes(join(program, 'tests')))
        process.kill(Number(pid), 'SIGKILL');
    } catch {
      // It has just ended.
    }
  }
}

// Sessions and logs, by their paths. The journals as files are written again from the database.
function readFiles(data) {
  const paths = readdirSync(join(data, 'runs'), { recursive: true, encoding: 'utf8' }).filter(
    (path) =>
      statSync(join(data, 'runs', path)).isFile() &&
      !path.endsWith('command.json') &&
      !/\/[^/]+\/(?:fcmp|rasp)\.jsonl$/.test(`/${path}`),
  );
  return Object.fromEntries(paths.toSorted().map((path) => [path, readFileSync(join(data, 'runs', path), 'utf8')]));
}

// Without commands of psql, and comments.
function dumpPostgres() {
  const options = ['--no-owner', '--no-privileges', '--no-comments', '--inserts', '-n', 'parley'];
  return execFileSync('pg_dump', [...options, databaseUrl], { encoding: 'utf8', maxBuffer: 2 ** 28 })
    .split('\n')
    .filter((line) => !/^(?:\\|--|$)/.test(line))
    .join('\n');
}

rmSync(work, { recursive: true, force: true });
buildProgram();
const data = join(work, 'data');

await use(data, {}, {});
const db = new DatabaseSync(join(data, 'parley.db'));
db.exec('PRAGMA wal_checkpoint(TRUNCATE); VACUUM; PRAGMA journal_mode = DELETE');
const { user_version: sqlite } = db.prepare('PRAGMA user_version').get();
db.close();
const target = join(repository, 'tests', 'old-databases', `upgrade-${sqlite}`);
const keep = (name, bytes) => writeFileSync(join(target, `${name}.gz`), gzipSync(bytes, { level: 9 }));
rmSync(target, { recursive: true, force: true });
mkdirSync(target);
keep('sqlite.db', readFileSync(join(data, 'parley.db')));
keep('sqlite-files.json', JSON.stringify(readFiles(data)));

rmSync(data, { recursive: true });
await use(data, { PARLEY_DATABASE_URL: databaseUrl }, { cluster: { files: 'shared', lease_sec: 3 } });
const dump = dumpPostgres();
keep('postgres.sql', dump);
keep('postgres-files.json', JSON.stringify(readFiles(data)));
// The newest versions that this program knows: it refuses any later one.
const postgres = Number(/INTO parley\.meta VALUES \('version', '(\d+)'\)/.exec(dump)?.[1]);
writeFileSync(join(target, 'versions.json'), `${JSON.stringify({ commit: COMMIT, sqlite, postgres })}\n`);
rmSync(work, { recursive: true, force: true });

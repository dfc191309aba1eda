// Makes tests/old-databases/upgrade: a data directory and a PostgreSQL database as the previous version leaves them,
// used like a person would use it and then killed while working. Needed again only when another version becomes the
// previous one: change COMMIT, and run `node scripts/make-upgrade-fixtures.mjs postgresql://…/DATABASE` with an empty
// database of a server that the installed pg_dump can read.
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

const COMMIT = 'a6d018d';
const repository = new URL('..', import.meta.url).pathname;
const target = join(repository, 'tests', 'old-databases', 'upgrade');
// The same on every machine, because it is part of the stored fixtures.
const work = join(tmpdir(), 'parley-old');
const program = join(work, 'program');
const { DatabaseSync } = createRequire(import.meta.url)('@photostructure/sqlite');
const [databaseUrl] = process.argv.slice(2);
if (databaseUrl === undefined) throw new Error('name an empty PostgreSQL database');

function buildProgram() {
  mkdirSync(program, { recursive: true });
  execFileSync('tar', ['-x', '-C', program], {
    input: execFileSync('git', ['archive', COMMIT], { cwd: repository, maxBuffer: 2 ** 30 }),
  });
  execFileSync('npm', ['ci', '--omit=dev'], { cwd: program, stdio: 'inherit' });
  execFileSync(
    process.execPath,
    [
      join(repository, 'node_modules', 'typescript', 'bin', 'tsc'),
      '-p',
      'tsconfig.build.json',
      '--skipLibCheck',
      '--typeRoots',
      join(repository, 'node_modules', '@types'),
    ],
    { cwd: program, stdio: 'inherit' },
  );
}

// Runs in each state. `req_6` would be decided in a year, `req_7` within a minute, after everything was killed.
async function use(data, env, settings) {
  mkdirSync(data, { recursive: true, mode: 0o700 });
  const hooks = [{ name: 'board', url: 'http://127.0.0.1:9/hook', secret_env: 'BOARD_SECRET' }];
  writeFileSync(join(data, 'config.json'), JSON.stringify({ slots: 1, webhooks: hooks, ...settings }), { mode: 0o600 });
  const folder = join(work, 'folder');
  mkdirSync(folder, { recursive: true });
  const all = {
    PATH: process.env.PATH,
    HOME: work,
    USER: 'somebody',
    HOSTNAME: 'old-host',
    PARLEY_DATA: data,
    BOARD_SECRET: 'no secret, 16 bytes',
    ...env,
  };
  const parley = (expected, ...args) => {
    const { status, stdout, stderr } = spawnSync(process.execPath, [join(program, 'bin', 'parley.js'), ...args], {
      cwd: folder,
      encoding: 'utf8',
      env: all,
    });
    if (status !== expected) throw new Error(`parley ${args.join(' ')}: ${status}\n${stdout}${stderr}`);
  };
  const run = (expected, id, prompt, ...more) =>
    parley(expected, 'run', 'rehearsal', prompt, '--request-id', id, '--label', `n=${id}`, ...more);
  const decides = ['-i', '-o', 'interactive_require_user_reply=false'];
  if (env.PARLEY_DATABASE_URL) parley(0, 'migrate');
  run(0, 'req_1', '[[answer Hello.]][[done {"n":1}]]');
  run(3, 'req_2', '[[ask Which?|a|b]][[done {"n":2}]]', '-i');
  parley(0, 'reply', 'last', 'b');
  run(1, 'req_3', '[[fail]]');
  run(3, 'req_4', '[[ask May I?]][[done {}]]', '-i');
  parley(0, 'cancel', 'last');
  run(3, 'req_5', '[[ask For ever?|yes|no]][[done {"n":5}]]', '-i');
  run(3, 'req_6', '[[ask Next year?|yes|no]][[done {"n":6}]]', ...decides, '-o', 'session_timeout_sec=31536000');
  run(3, 'req_7', '[[ask In a minute?|yes|no]][[done {"n":7}]]', ...decides, '-o', 'session_timeout_sec=60');
  parley(0, 'token', 'add', 'ann', '--role', 'replier');
  const server = spawn(process.execPath, [join(program, 'bin', 'parley.js'), 'serve', '--port', '0', '--json'], {
    cwd: folder,
    env: all,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  await once(server.stdout, 'data');
  run(0, 'req_8', '[[hang]]', '-d');
  await pause(3000);
  run(0, 'req_9', '[[done {"n":9}]]', '-d');
  server.kill('SIGKILL');
  await once(server, 'exit');
  // Its engine is still running.
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      if (readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(join(program, 'dist', 'rehearsal', 'main.js')))
        process.kill(Number(pid), 'SIGKILL');
    } catch {
      // It has just ended.
    }
  }
}

// Sessions and logs, by their paths.
function keepFiles(data, name) {
  const paths = readdirSync(join(data, 'runs'), { recursive: true, encoding: 'utf8' }).filter(
    (path) =>
      statSync(join(data, 'runs', path)).isFile() &&
      !path.endsWith('command.json') &&
      !path.endsWith('cmp.jsonl') &&
      !path.endsWith('rasp.jsonl'),
  );
  const contents = paths.toSorted().map((path) => [path, readFileSync(join(data, 'runs', path), 'utf8')]);
  writeFileSync(join(target, name), `${JSON.stringify(Object.fromEntries(contents), null, 1)}\n`);
}

rmSync(work, { recursive: true, force: true });
mkdirSync(target, { recursive: true });
buildProgram();

await use(join(work, 'data'), {}, {});
const db = new DatabaseSync(join(work, 'data', 'parley.db'));
db.exec('PRAGMA wal_checkpoint(TRUNCATE); VACUUM; PRAGMA journal_mode = DELETE');
db.close();
writeFileSync(join(target, 'sqlite.db'), readFileSync(join(work, 'data', 'parley.db')));
keepFiles(join(work, 'data'), 'sqlite-files.json');

rmSync(join(work, 'data'), { recursive: true });
await use(join(work, 'data'), { PARLEY_DATABASE_URL: databaseUrl }, { cluster: { files: 'shared', lease_sec: 3 } });
execFileSync('psql', [databaseUrl, '-c', `SELECT graphile_worker.add_job('send_mail', '{}'::json)`]);
const dump = execFileSync(
  'pg_dump',
  ['--no-owner', '--no-privileges', '--no-comments', '--inserts', '-n', 'parley', '-n', 'graphile_worker', databaseUrl],
  { encoding: 'utf8', maxBuffer: 2 ** 28 },
);
// Commands of psql, and comments.
writeFileSync(
  join(target, 'postgres.sql'),
  dump
    .split('\n')
    .filter((line) => !/^(?:\\|--|$)/.test(line))
    .join('\n'),
);
keepFiles(join(work, 'data'), 'postgres-files.json');
rmSync(work, { recursive: true, force: true });

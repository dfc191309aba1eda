// The English texts of the commands that look after a setup: doctor, demo, import, migrate, audit, webhook and the
// messages of a server that stops. administration-zh-cn.ts has the same keys.

const plural = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`;

export const DOCTOR = {
  // Between facts, between names and between whole findings.
  and: ', ',
  names: ', ',
  next: '; ',
  andMore: (count: number) => `and ${count} more`,
  version: (version: string, node: string, platform: string) => `${version} on Node ${node}, ${platform}`,
  free: (size: string) => `${size} free`,
  otherDirectory: 'choose another with --data or PARLEY_DATA',
  notADirectory: (path: string, advice: string) => `${path} is not a directory; ${advice}`,
  notWritable: (path: string, advice: string) => `${path} cannot be written; ${advice}`,
  ownRuns: (path: string, free: string) =>
    `${path}, ${free}; the runs of its own are not those of the database: parley import copies them`,
  lostDatabase: (path: string, folders: number, database: string, restore: string) =>
    `${path} has ${plural(folders, 'run folder')}, but ${database}. ${restore}`,
  databaseEmpty: 'parley.db is empty',
  databaseMissing: 'no parley.db',
  nothingYet: (path: string, free: string) => `${path} (nothing there yet), ${free}`,
  waiting: (count: number) => `${count} waiting for you`,
  overdue: (count: number) => `${count} of them overdue`,
  served: (address: string) => `served at ${address}`,
  writing: (pid: number) => `process ${pid} is writing`,
  database: (name: string, version: string, schema: string) =>
    `${name} (PostgreSQL ${version}, tables of version ${schema})`,
  noHost: 'none is alive: parley serve starts one',
  host: (name: string, time: string) => `${name} since ${time}`,
  unreadableAddress: 'an address that cannot be read',
  hostsDiffer: (setting: string, values: string, advice: string) =>
    `the running hosts differ in ${setting}: ${values}; ${advice}`,
  valueOf: (value: string, hosts: string) => `${value} (${hosts})`,
  namesAndMore: (names: string, count: number) => `${names} and ${count} more`,
  setTheSame: 'set the same in config.json of each',
  theirVersion: 'their version of Parley',
  updateThem: 'update them to the same',
  noDamage: (checked: string) => `none found: ${checked}`,
  damage: (damaged: number, runs: number, list: string, waysOut: string, checked: string) =>
    `${damaged} of ${runs} runs are damaged: ${list}. ${waysOut}; ${checked}`,
  damagedGroups: (list: string) =>
    `events of running turns are damaged: ${list}. Parley reads them again from the logs of the engines when a turn ` +
    'ends. The damaged rows are kept.',
  totalsUnchecked: (runs: number) => `the totals of the metrics were not compared with ${runs} runs: --full does`,
  wrongTotal: (name: string, total: number, counted: number) => `${name}: ${total} instead of ${counted}`,
  wrongTotals: (list: string) =>
    `totals of the metrics differ from the stored runs: ${list}. Stop the server and count them again: ` +
    'parley doctor --recount',
  damagedRun: (run: string, damage: string) => `${run} (${damage})`,
  check: (name: string, finding: string) => `${name}: ${finding}`,
  waysOut:
    'Save what is left of them (parley show, parley watch --json, parley logs; from a server GET ' +
    '/v1/runs/ID/archive), restore a backup (docs/guides/backup-and-restore.md), or delete them (parley rm)',
  checkedFull: (runs: number) => `checked all ${runs} runs with their journals and files`,
  checkedFullButElsewhere: (runs: number, elsewhere: number) =>
    `checked all ${runs} runs with their journals and files (the files of ${elsewhere} are on another host, or gone, ` +
    'and were not checked)',
  checkedEnds: (runs: number) => `checked all ${runs} runs and the end of their journals; --full checks everything`,
  checkedSome: (runs: number, total: number) =>
    `checked the newest ${runs} of ${total} runs and the end of their journals; --full checks everything`,
  digestDiffers: 'its events do not match their digest',
  integrityUnchecked: (size: string) => `parley.db (${size}) was not checked: --full does, and may take minutes`,
  integrityOk: (size: string) => `parley.db (${size}) has no structural damage`,
  integrityBroken: (problems: string) =>
    `parley.db is damaged: ${problems}. Stop Parley and restore a backup, or salvage it with ` +
    'sqlite3 parley.db .recover',
  auditAltered: (problem: string) =>
    `the administrative journal was altered: ${problem}. Check all of it: parley audit --verify`,
  openToOthers: (path: string, found: string) =>
    `${path}: ${found}. Use a directory that only Parley uses, and close it to other users: chmod -R go= DIRECTORY`,
  writtenByOthers: (name: string) => `other users can write to ${name} and so start programs as you`,
  directoryWrittenByOthers: 'other users can write to it and so start programs as you',
  readByOthers: (name: string) => `${name} is open to other users`,
  notAProgram: (place: string) => `${place} is not a program`,
  unknownVersion: 'unknown version',
  engine: (version: string, place: string) => `${version} (${place})`,
  bundled: 'bundled',
  loggedIn: (place: string) => `logged in by ${place}`,
  continues: 'can continue conversations',
  loggedOut: (advice: string) => `not logged in: ${advice}`,
};

export const DEMO = {
  kept: (path: string) => `Everything is kept in ${path}: parley show last --data ${path}`,
  start: 'An agent is started, and after some work it asks.',
  started: (run: string, pid: number) => `${run}, orchestrated by process ${pid}`,
  waiting: (processes: number) => `waiting: ${processes} processes of the agent`,
  kill: (pid: number) => `The orchestrator is killed: kill -9 ${pid}`,
  killed: 'gone; nothing was asked to shut down',
  restart: 'A new one starts. The question is still there.',
  restarted: (pid: number, question: string) => `process ${pid} found it: ${question}`,
  answer: (option: string) =>
    `The answer, perhaps a week later: ${option}. A new process continues the same conversation.`,
  turn: (turn: number, pid: number, session: string) => `turn ${turn}: process ${pid}, session ${session}`,
  unknownSession: 'unknown',
  proof: 'What happened can be proved.',
  tryIt: (command: string) => `Try it yourself: ${command} run rehearsal "Set up the storage"`,
};

export const IMPORT = {
  progress: (done: number, total: number) => `${done} of ${plural(total, 'run')}`,
  copied: (count: number, database: string) => `${plural(count, 'run')} copied into ${database}`,
  copiedButKnown: (count: number, database: string, known: number) =>
    `${plural(count, 'run')} copied into ${database}, ${known} ${known === 1 ? 'was' : 'were'} there already`,
  more: (count: number) => `${count} more`,
  names: ', ',
};

export const MIGRATE = {
  ready: 'the database is ready',
  oldJobs: (count: number) => `Deleted ${plural(count, 'job')} of an earlier Parley from the schema graphile_worker.`,
  otherTasks: (tasks: string) => `Other programs use this schema (tasks: ${tasks}). Keep it.`,
  names: ', ',
  // The SQL statement follows on its own line.
  unused: (jobs: string) =>
    `${jobs} Parley no longer uses this schema.\n` +
    'Drop it once no other program uses it and no earlier Parley will run on this database again:',
};

export const COMPACT = {
  packing: (done: number, total: number) => `packing ${done} of ${plural(total, 'run')}`,
  rewriting: 'rewriting the database',
  done: (before: string, after: string) => `The database had ${before}; now it has ${after}.`,
  damaged: (runs: string) =>
    `The journals of these runs are damaged and were not packed completely: ${runs}. More about them: ` +
    'parley doctor --full',
  heldUp:
    'Another process still reads the database. Its file becomes smaller when that process has ended and Parley ' +
    'writes to the directory again.',
  more: (count: number) => `${count} more`,
  names: ', ',
};

export const AUDIT = {
  empty: 'The administrative journal is empty.',
  unchanged: 'unchanged',
  changed: 'CHANGED',
  rows: (word: string, rows: number) => `${word}: ${rows} rows of the administrative journal`,
  problem: (word: string, problem: string) => `${word}: ${problem}`,
  noHead: 'The head of the administrative journal is missing. Check it: parley audit --verify',
  noRowAfter: (row: number, last: number) => `No row after ${row}: the last row is ${last}.`,
};

export const WEBHOOK = {
  none: 'none',
  delivered: (name: string) => `delivered to "${name}"`,
  notDelivered: (name: string, problem: string) => `not delivered to "${name}": ${problem}`,
};

export const STOP = {
  interrupted: (work: string) => `Interrupted ${work}.`,
  turns: (count: number) => plural(count, 'running turn'),
  queued: (count: number) => plural(count, 'queued run'),
  both: (turns: string, queued: string) => `${turns} and ${queued}`,
  queuedStay: 'Queued runs stay queued.',
  keepQueued: 'Set recovery.queued to "requeue" in config.json to keep queued runs.',
  repeated: 'New runs repeat the interrupted ones at the next start.',
  repeat: 'Set recovery.running to "retry" in config.json to repeat interrupted runs.',
  between: ' ',
};

// The texts of the command line in English: labels and messages here, help and administration beside it. zh-cn.ts has
// the same keys. JSON output and logs do not use them.
import { ENGLISH_TERMINAL } from '../../terminal/texts.js';
import { AUDIT, COMPACT, DEMO, DOCTOR, IMPORT, MIGRATE, STOP, WEBHOOK } from './administration-en.js';
import { HELP } from './help-en.js';

const SAY = {
  statuses: {
    queued: 'queued',
    running: 'running',
    waiting_user: 'waiting for you',
    succeeded: 'succeeded',
    failed: 'failed',
    canceled: 'canceled',
  },
  overdue: (status: string) => `${status} (overdue)`,
  stillWorking: 'The agent is still working.',
  stillWorkingChoices: '[l]eave it running, [c]ancel it, or Enter to continue watching',
  questionWaits: 'The question is waiting for you.',
  questionChoices: '[l]eave it waiting, [c]ancel the run, or Enter to answer',
  leftRunning: (run: string) =>
    `left running: ${run}\n  parley watch ${run}    continue watching\n  parley cancel ${run}   stop it`,
  waiting: (run: string) => `waiting for you: ${run}\n  parley reply ${run}`,
  waitingWhileWatched: (run: string) => `waiting for you: parley reply ${run}    (Ctrl-C stops watching)`,
  retryOrShow: (run: string) => `Retry: parley retry ${run}    More: parley show ${run} --details`,
  noWorker: (run: string, status: string) =>
    `parley: no process works on run ${run} any more (${status})\n  parley retry ${run}    end it with its error ` +
    'code and retry',
  pasteTooLong: (limit: string) =>
    `The pasted text has more than ${limit} characters: it was discarded. Send a file: parley reply RUN - < FILE`,
  pasted: (count: number) => `pasted ${count} ${count === 1 ? 'line' : 'lines'}; Enter sends, Ctrl-C discards`,
  pasteDiscarded: 'The pasted text was discarded.',
  moreLines: (count: number) => `… ${count} more lines`,
  linesLeft: (left: number, total: number) => `${left} more ${left === 1 ? 'line' : 'lines'} of ${total}`,
  nothingWaits: 'Nothing is waiting for you.',
  nothingWaitsNow: 'Nothing is waiting for you any more.',
  inboxHeaders: { run: 'RUN', waits: 'WAITS', engine: 'ENGINE', wants: 'WANTS', question: 'QUESTION', task: 'TASK' },
  inboxKinds: {
    approval: 'approve',
    choose_one: 'choose',
    confirm: 'confirm',
    fill_fields: 'form',
    open_text: 'answer',
    conversation: 'continue',
  } as Readonly<Record<string, string>>,
  inboxPrompt: (range: string) => `${range} to answer, Enter to leave > `,
  noSuchQuestion: (text: string, count: number) => `There is no question ${text}: type a number from 1 to ${count}.`,
  finished: 'Finished.',
  canceledRun: (run: string) => `canceled ${run}`,
  deletedRun: (run: string) => `deleted ${run}`,
  readingText: 'parley: reading the text from this terminal; end it with Ctrl-D',
  readingOutput: "parley: reading the engine's stdout from this terminal; end it with Ctrl-D",
  damagedEvent: '(a damaged event)',
  listHeaders: { run: 'RUN', status: 'STATUS', engine: 'ENGINE', age: 'AGE', prompt: 'PROMPT' },
  noRunsIn: (path: string) =>
    `No runs yet in ${path}\n  parley run rehearsal "Set up the storage" --interactive    start one`,
  noRuns: 'No runs yet.',
  noMatch: 'No run matches these filters.',
  notListed: (run: string, reason: string) => `run ${run} is not listed because its stored data is damaged: ${reason}`,
  facts: {
    run: 'run',
    status: 'status',
    folder: 'folder',
    continues: 'continues',
    copyOf: 'copy of',
    retryOf: 'retry of',
    waits: 'waiting',
    label: 'label',
    events: 'events',
  },
  statusFact: (status: string, turn: number, age: string) => `${status}, turn ${turn}, started ${age} ago`,
  waitsInProcess: 'in its process',
  waitsInProcessUntil: (time: string) => `in its process, until ${time}`,
  waitsWithoutProcess: 'without a process',
  eventsFact: (observed: number, shown: number, digest: string) =>
    `${observed} observed, ${shown} shown, digest ${digest}…`,
  answerIt: (run: string) => `answer it: parley reply ${run}`,
  retryIt: (run: string) => `retry it: parley retry ${run}`,
  intact: 'everything is as it was written',
  altered: 'NOT as it was written',
  checkedRun: (run: string, verdict: string) => `${run}: ${verdict}`,
  checkedAll: (count: number) => `${count} ${count === 1 ? 'run' : 'runs'} checked: all intact.`,
  checkedSome: (count: number, intact: number, altered: number) =>
    `${count} ${count === 1 ? 'run' : 'runs'} checked: ${intact} intact, ${altered} altered.`,
  checkedNone: '0 runs checked: none has its files here.',
  filesElsewhere: (count: number) =>
    count === 1
      ? '1 run was not checked: its files are on another host or missing'
      : `${count} runs were not checked: their files are on another host or missing`,
  noRunsToCheck: (path: string) => `no runs in ${path}`,
  replayed: (rebuilt: number, observed: number) =>
    `${rebuilt} events of the conversation rebuilt from ${observed} observed events: identical to the stored ` +
    'ones, byte for byte',
  replayDiffers: (observed: number, seq: number) =>
    `the conversation rebuilt from ${observed} observed events differs from the stored one at event ${seq}`,
  checkProgress: (events: number, total: number) => `checked ${events} of ${total} events`,
  checkLogProgress: (bytes: string, total: string) => `, ${bytes} of ${total} of logs`,
  damaged: (damage: string) => `parley: damaged: ${damage}`,
  moreDamage: (count: number) => `parley: and ${count} more. parley show --json lists all of them.`,
  settingHeaders: { setting: 'SETTING', value: 'VALUE', origin: 'ORIGIN', applies: 'CHANGES APPLY' },
  settingOrigin: 'default',
  settingWhen: { 'at once': 'at once', 'after a restart': 'after a restart' },
  // What applies while a setting has no value.
  settingUnset: (meaning: string) => `(${meaning})`,
  settingEmpty: {
    'found on PATH': 'found on PATH',
    'by the number of cores': 'by the number of cores',
    'by the terminal': 'by the terminal',
    'chosen by the engine': 'chosen by the engine',
    'no limit': 'no limit',
    'home and start folder': 'home and start folder',
    'the listening address': 'the listening address',
    'a quarter of max_streams': 'a quarter of max_streams',
    'the loopback address': 'the loopback address',
  } as Readonly<Record<string, string>>,
  settingApplies: {
    'at once': 'A running server applies it within a few seconds.',
    'after a restart': 'Restart the server to apply it.',
  },
  settingDefault: (name: string) => `${name}: default`,
  settingsValid: (file: string) => `${file} is valid.`,
  settingProblems: (file: string, count: number) => `${file} has ${count === 1 ? '1 problem' : `${count} problems`}:`,
  noTokens: 'no tokens other than the operator token',
  tokenHeaders: {
    name: 'NAME',
    person: 'PERSON',
    role: 'ROLE',
    created: 'CREATED',
    expires: 'EXPIRES',
    used: 'LAST USED',
  },
  never: 'never',
  neverUsed: 'never',
  expired: (time: string) => `expired ${time}`,
  tokenStored: (name: string, role: string) => `Token "${name}" (${role}). It is not stored and not shown again.`,
  operatorRotated: (file: string) => `The new operator token; the old one is no longer valid. It is stored in ${file}.`,
  tokenRotated: (name: string) =>
    `The new value of token "${name}"; the old one is invalid. It is not stored and not shown again.`,
  tokenUse: (address: string, command: string) =>
    `A program sends it as Authorization: Bearer TOKEN. In a browser, enter it at ${address}, or run ${command}.`,
  serverAddress: 'the address of the server',
  tokenRevoked: (name: string) => `revoked ${name}`,
  tokenPreset:
    'The running server was started with PARLEY_TOKEN and still uses that. Restart it without PARLEY_TOKEN, or ' +
    'with another.',
  sessionEnded: (session: string) => `ended ${session}`,
  noSessions: 'no browser is signed in',
  sessionHeaders: {
    session: 'SESSION',
    person: 'PERSON',
    token: 'TOKEN',
    used: 'LAST USED',
    ends: 'ENDS',
    address: 'ADDRESS',
    browser: 'BROWSER',
  },
  linkUse: (name: string, role: string, time: string) =>
    `Signs one browser in as ${name} (${role}), once, until ${time}.`,
  loopback: (host: string) =>
    `Only this machine can open it: ${host} is a loopback address. For other devices, set public_url in config.json.`,
  opening: (address: string) => `Opening ${address}`,
  browserFailed: (address: string) => `The browser could not be started. Open the address yourself: ${address}`,
  serving: (version: string) => `Parley ${version} is running`,
  servingFacts: { open: 'open', api: 'API', data: 'data', roots: 'runs may work in', webhooks: 'webhooks' },
  signInOnce: 'The link signs one browser in, once, within 10 minutes. For another one: parley link',
  signIn: 'To sign a browser in: parley link',
  reachable: (host: string) =>
    `Reachable from other machines (${host}): anyone with the token can run agents here. Put TLS in front of it.`,
  stopServer: 'Press Ctrl-C to stop; waiting runs are kept.',
  stopping: (seconds: number, turns: number) =>
    `Stopping. Waiting up to ${seconds} s for ${turns === 1 ? '1 running turn' : `${turns} running turns`} to end ` +
    '(shutdown_grace_sec). Press Ctrl-C again to stop now.',
  doctorHint: 'No engine yet? Try the rehearsal: parley run rehearsal "Set up the storage" --interactive',
  internalError: (error: string) => `parley: internal error, please report it: ${error}`,
  isFolder: 'it is a folder',
  isNotFolder: 'it is not a folder',
  unknownLanguage: (value: string) => `parley: PARLEY_LANG is ${value}; use en, zh or zh-CN. Continuing in English.`,
};

export const ENGLISH = {
  help: HELP,
  say: SAY,
  doctor: DOCTOR,
  demo: DEMO,
  import: IMPORT,
  compact: COMPACT,
  migrate: MIGRATE,
  audit: AUDIT,
  webhook: WEBHOOK,
  stop: STOP,
  terminal: ENGLISH_TERMINAL,
};

export type Texts = typeof ENGLISH;

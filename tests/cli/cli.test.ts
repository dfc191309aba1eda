import { PassThrough, Readable } from 'node:stream';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ENGINES } from '../../src/engines/registry.js';
import { runCli } from '../../src/cli/program.js';
import type { FcmpEvent } from '../../src/fcmp/event.js';
import { projectConversation } from '../../src/fcmp/fold.js';
import { explainFcmp } from '../../src/fcmp/validate.js';
import { CATEGORIES, type RaspEvent } from '../../src/rasp/event.js';
import { explainRasp } from '../../src/rasp/validate.js';
import { createIo } from '../support/io.js';
import { joinLines } from '../support/parse.js';

interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

const NOW = Date.UTC(2026, 10, 15, 12);
const THREAD = '01a1e065-6fe8-7fd2-a5f7-dea3d46cd55c';
const STARTED = `{"type":"thread.started","thread_id":"${THREAD}"}`;
const COMPLETED =
  '{"type":"turn.completed","usage":{"input_tokens":100,"cached_input_tokens":10,' +
  '"cache_write_input_tokens":0,"output_tokens":20,"reasoning_output_tokens":5}}';
const PLAIN = joinLines(
  STARTED,
  '{"type":"turn.started"}',
  '{"type":"item.completed","item":{"id":"item_1","type":"agent_message","text":"Hello from fake model."}}',
  COMPLETED,
);
const ASK =
  '{"id":"item_2","type":"mcp_tool_call","server":"parley","tool":"ask_human","arguments":{"prompt":"Which ' +
  'database?","options":["Postgres","SQLite"]},"result":{"content":[]},"error":null,"status":"completed"}';
const PATCH = '{"id":"item_3","type":"file_change","changes":[{"path":"/w/a.txt","kind":"add"}],"status":"completed"}';
const BUSY = joinLines(
  STARTED,
  'zwölf 漢字 🚀',
  `{"type":"item.completed","item":${ASK}}`,
  `{"type":"item.completed","item":${PATCH}}`,
  '{"type":"item.completed","item":{"id":"item_4","type":"agent_message","text":"Asked."}}',
  COMPLETED,
);
const STDERR = 'Reading additional input from stdin...\nsecond line\n';

function collect(stream: PassThrough): () => string {
  const chunks: Buffer[] = [];
  stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  return () => Buffer.concat(chunks).toString('utf8');
}

async function run(args: readonly string[], stdin: string | readonly Buffer[] = ''): Promise<Ran> {
  const stdout = new PassThrough();
  const stderr = new PassThrough();
  const [out, err] = [collect(stdout), collect(stderr)];
  const source = Readable.from(typeof stdin === 'string' ? [Buffer.from(stdin)] : stdin, { objectMode: false });
  const code = await runCli(args, createIo({ stdin: source, stdout, stderr }, { clock: { now: () => NOW } }));
  return { code, stdout: out(), stderr: err() };
}

function parseCodex(stdin: string | readonly Buffer[], ...flags: string[]): Promise<Ran> {
  return run(['parse', '--engine', 'codex', ...flags], stdin);
}

function linesOf<T>({ code, stdout, stderr }: Ran): T[] {
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout.endsWith('\n')).toBe(true);
  return stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as T);
}

function raspOf(ran: Ran): RaspEvent[] {
  const events = linesOf<RaspEvent>(ran);
  for (const event of events) expect(explainRasp(event), event.event.type).toBeNull();
  return events;
}

function fcmpOf(ran: Ran): FcmpEvent[] {
  const events = linesOf<FcmpEvent>(ran);
  for (const event of events) expect(explainFcmp(event), event.type).toBeNull();
  return events;
}

let folder: string;
let stderrFile: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'parley-cli-'));
  stderrFile = join(folder, 'stderr.log');
  await writeFile(stderrFile, STDERR);
});

afterAll(() => rm(folder, { recursive: true, force: true }));

describe('parse', () => {
  test('it prints the turn as RASP, one event a line, with seqs from 1 without a gap', async () => {
    const events = raspOf(await parseCodex(PLAIN, '--prompt', 'Say hello'));
    expect(events.map(({ event }) => event.type)).toEqual([
      'lifecycle.run.created',
      'lifecycle.state.changed',
      'lifecycle.turn.started',
      'lifecycle.session.bound',
      'lifecycle.engine.progress',
      'agent.message.final',
      'agent.usage',
      'lifecycle.turn.ended',
      'interaction.requested',
      'lifecycle.state.changed',
    ]);
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1));
    expect(new Set(events.map(({ run_id }) => run_id)).size).toBe(1);
    expect(events[0]).toMatchObject({
      protocol_version: 'rasp/1.0',
      ts: '2026-11-15T12:00:00.000Z',
      attempt_number: 1,
      source: { engine: 'codex', parser: 'orchestrator', confidence: 1 },
      data: { prompt: 'Say hello' },
      raw_ref: null,
    });
    expect(events[5]).toMatchObject({
      source: { parser: 'codex_ndjson', confidence: 1 },
      event: { category: 'agent' },
      correlation: { session_id: THREAD, item_id: 'item_1' },
    });
  });

  test('all seven categories occur, and each type begins with its own', async () => {
    const events = raspOf(await parseCodex(BUSY, '--stderr', stderrFile));
    expect(new Set(events.map(({ event }) => event.category))).toEqual(new Set<string>(CATEGORIES));
    for (const { event } of events) expect(event.type.startsWith(`${event.category}.`)).toBe(true);
  });

  test('every raw_ref cuts its own bytes out of the recorded streams', async () => {
    const events = raspOf(await parseCodex(BUSY, '--stderr', stderrFile));
    const streams = { stdout: Buffer.from(BUSY), stderr: await readFile(stderrFile) };
    const raw = events.filter(({ event }) => event.category === 'raw');
    expect(raw.map(({ data }) => data['text'])).toEqual([
      'zwölf 漢字 🚀',
      'Reading additional input from stdin...',
      'second line',
    ]);
    for (const { data, raw_ref: ref } of raw) {
      expect(ref).toMatchObject({ attempt_number: 1, encoding: 'utf-8' });
      expect(streams[ref?.stream ?? 'stdout'].subarray(ref?.byte_from, ref?.byte_to).toString('utf8')).toBe(
        `${data['text'] as string}\n`,
      );
    }
  });

  test('recorded stderr becomes raw events; the end of the turn has the size and hash of both streams', async () => {
    const events = raspOf(await parseCodex(PLAIN, '--stderr', stderrFile));
    const ended = events.find(({ event }) => event.type === 'lifecycle.turn.ended');
    expect(ended?.data).toMatchObject({
      streams: {
        stdout: { bytes: PLAIN.length },
        stderr: { bytes: STDERR.length, sha256: expect.stringMatching(/^[0-9a-f]{64}$/) as unknown },
      },
    });
    expect(events.filter(({ data }) => data['code'] === 'STDERR_TEXT')).toHaveLength(1);
  });

  test('--fcmp prints the conversation instead, and it is the fold of the RASP that would be printed', async () => {
    const flags = ['--reproducible', '--stderr', stderrFile, '--prompt', 'Set it up'];
    const rasp = raspOf(await parseCodex(BUSY, ...flags));
    const ran = await parseCodex(BUSY, '--fcmp', ...flags);
    const fcmp = fcmpOf(ran);
    expect(fcmp.map(({ type }) => type)).toEqual([
      'conversation.started',
      'user.message',
      'conversation.state.changed',
      'raw.stdout',
      'diagnostic.warning',
      'assistant.tool.completed',
      'assistant.tool.completed',
      'artifact.file.changed',
      'assistant.message.final',
      'usage',
      'raw.stderr',
      'raw.stderr',
      'user.input.required',
      'conversation.state.changed',
    ]);
    expect(projectConversation(rasp[0]?.run_id ?? '', rasp)).toEqual(ran.stdout.trimEnd().split('\n'));
    expect(fcmp.at(-2)?.data).toMatchObject({ kind: 'choose_one', prompt: 'Which database?' });
    expect(fcmp.at(-1)?.data).toMatchObject({ from: 'running', to: 'waiting_user', trigger: 'turn.needs_input' });
  });

  test('--stats prints the counts and the judgement in one line', async () => {
    expect(linesOf(await parseCodex(BUSY, '--stats', '--stderr', stderrFile))).toEqual([
      {
        engine: 'codex',
        profile: 'codex_ndjson',
        turns: 1,
        units: 6,
        parsed: 5,
        fallbacks: 1,
        hit_rate: 5 / 6,
        warnings: { LINE_UNDECODABLE: 1, STDERR_TEXT: 1 },
        unknown: {},
        judgement: {
          rule: 'question',
          event: 'turn.needs_input',
          completion: 'awaiting_user_input',
          reason_code: 'QUESTION_ASKED',
        },
      },
    ]);
  });

  test('--stats counts a completion that is unknown under its reason', async () => {
    expect(linesOf(await parseCodex(joinLines(STARTED), '--stats'))).toMatchObject([
      {
        judgement: {
          completion: 'unknown',
          reason_code: 'NO_TURN_COMPLETED',
          event: 'turn.failed',
          error: { code: 'COMPLETION_UNKNOWN' },
        },
        unknown: { NO_TURN_COMPLETED: 1 },
      },
    ]);
  });

  test('--stats of nothing has no hit rate', async () => {
    expect(linesOf(await parseCodex('', '--stats'))).toMatchObject([{ units: 0, hit_rate: null }]);
  });

  test('--exit sets how the process ended, by code or by signal', async () => {
    expect(linesOf(await parseCodex(PLAIN, '--stats', '--exit', '3'))).toMatchObject([
      { judgement: { reason_code: 'EXIT_NONZERO', event: 'turn.failed' } },
    ]);
    expect(linesOf(await parseCodex(PLAIN, '--stats', '--exit', 'SIGTERM'))).toMatchObject([
      { judgement: { reason_code: 'EXIT_SIGNAL', event: 'turn.failed' } },
    ]);
    const ended = raspOf(await parseCodex(PLAIN, '--exit', 'SIGKILL')).find(
      ({ event }) => event.type === 'lifecycle.turn.ended',
    );
    expect(ended?.data['exit']).toEqual({ code: null, signal: 'SIGKILL' });
  });

  test('--mode auto judges the turn as one that cannot ask', async () => {
    expect(linesOf(await parseCodex(PLAIN, '--stats', '--mode', 'auto'))).toMatchObject([
      { judgement: { event: 'turn.succeeded', reason_code: 'ENGINE_SUCCESS' } },
    ]);
    expect(linesOf(await parseCodex(BUSY, '--stats', '--mode', 'auto'))).toMatchObject([
      { judgement: { event: 'turn.failed', reason_code: 'AUTO_MODE_CANNOT_ASK' } },
    ]);
    const fcmp = fcmpOf(await parseCodex(PLAIN, '--fcmp', '--mode', 'auto'));
    expect(fcmp.slice(-2).map(({ type }) => type)).toEqual(['conversation.completed', 'conversation.state.changed']);
  });

  test('--resumed-from judges whether the same session was continued', async () => {
    expect(linesOf(await parseCodex(PLAIN, '--stats', '--resumed-from', THREAD))).toMatchObject([
      { judgement: { event: 'turn.needs_input' } },
    ]);
    expect(
      linesOf(await parseCodex(PLAIN, '--stats', '--resumed-from', '01a1e066-1af9-75a0-ae2d-94d021efeed4')),
    ).toMatchObject([{ judgement: { event: 'turn.failed', reason_code: 'SESSION_CHANGED' } }]);
    expect(linesOf(await parseCodex('', '--stats', '--resumed-from', THREAD))).toMatchObject([
      { judgement: { event: 'turn.failed', reason_code: 'SESSION_NOT_CONFIRMED' } },
    ]);
  });

  test('--reproducible gives the same bytes each time, however the input comes in', async () => {
    for (const flags of [['--reproducible'], ['--reproducible', '--fcmp'], ['--reproducible', '--stats']]) {
      const first = await parseCodex(BUSY, ...flags);
      expect(await parseCodex(BUSY, ...flags)).toEqual(first);
      const bytes = Buffer.from(BUSY);
      expect(
        await parseCodex(
          Array.from({ length: bytes.length }, (_, at) => bytes.subarray(at, at + 1)),
          ...flags,
        ),
      ).toEqual(first);
      expect(first.stdout.length).toBeGreaterThan(100);
    }
  });

  test('without it every run has an id of its own', async () => {
    const [first, second] = [raspOf(await parseCodex(PLAIN)), raspOf(await parseCodex(PLAIN))];
    expect(first[0]?.run_id).toMatch(/^run_[0-9A-HJKMNP-TV-Z]{26}$/);
    expect(first[0]?.run_id).not.toBe(second[0]?.run_id);
  });

  test('a reader that is slow gets everything', async () => {
    const stdout = new PassThrough({ highWaterMark: 16 });
    const done = runCli(
      ['parse', '-e', 'codex', '--reproducible'],
      createIo(
        { stdin: Readable.from([Buffer.from(BUSY)]), stdout, stderr: new PassThrough() },
        { clock: { now: () => NOW } },
      ),
    );
    void done.then(() => stdout.end());
    let read = '';
    for await (const chunk of stdout) read += String(chunk);
    expect(await done).toBe(0);
    expect(read).toBe((await parseCodex(BUSY, '--reproducible')).stdout);
  });

  test.each([
    [
      'gemini',
      '{"type":"init","session_id":"58189485-f74d-4e81-8b6e-1f4b90158a5a"}\n' +
        '{"type":"message","role":"assistant","content":"Hi","delta":true}\n{"type":"result","status":"success"}\n',
      'gemini_json',
    ],
    [
      'iflow',
      'Hi\n<Execution Info>\n{"session-id":"session-e06bbd16-086a-47b2-8903-c9c250e3c2f7"}\n</Execution Info>\n',
      'iflow_text',
    ],
    [
      'opencode',
      '{"type":"text","sessionID":"ses_e1f945bf0ffefqKnzUAxMzYdTN","part":{"text":"Hi"}}\n' +
        '{"type":"step_finish","sessionID":"ses_e1f945bf0ffefqKnzUAxMzYdTN","part":{"reason":"stop"}}\n',
      'opencode_ndjson',
    ],
    [
      'rehearsal',
      '{"type":"session","session_id":"5ce7e000-0000-4000-8000-000000000001"}\n' +
        '{"type":"message","id":"item_1","text":"Hi"}\n{"type":"end"}\n',
      'rehearsal_ndjson',
    ],
  ])('it reads %s, and the message of the turn becomes the question', async (engine, recorded, profile) => {
    const fcmp = fcmpOf(await run(['parse', '-e', engine, '--fcmp'], recorded));
    expect(fcmp.at(-2)).toMatchObject({
      type: 'user.input.required',
      data: { kind: 'open_text', prompt: 'Hi', channel: 'conversation' },
    });
    expect(linesOf(await run(['parse', '-e', engine, '--stats'], recorded))).toMatchObject([
      { engine, profile, hit_rate: 1 },
    ]);
  });

  test('whatever the agent gives as its result, the turn is judged', async () => {
    const deep = `{"done":true,"result":${'['.repeat(20_000)}${']'.repeat(20_000)}}`;
    const recorded = joinLines(
      STARTED,
      JSON.stringify({ type: 'item.completed', item: { id: 'item_1', type: 'agent_message', text: deep } }),
      COMPLETED,
    );
    expect((await parseCodex(recorded, '--stats')).code).toBe(0);
  });
});

describe('contract', () => {
  interface Contract {
    readonly initial: string;
    readonly states: string[];
    readonly terminal: string[];
    readonly events: string[];
    readonly edges: { readonly id: string; readonly extension?: string }[];
    readonly run_errors: { readonly code: string }[];
  }

  test('it prints the chart with its 6 states, 9 events and 13 edges, and nothing sticky', async () => {
    const { code, stdout } = await run(['contract']);
    const contract = JSON.parse(stdout) as Contract;
    expect(code).toBe(0);
    expect(contract).toMatchObject({ initial: 'queued', terminal: ['succeeded', 'failed', 'canceled'] });
    expect([contract.states.length, contract.events.length, contract.edges.length]).toEqual([6, 9, 13]);
    expect(stdout).not.toMatch(/sticky|extension|INTERACTION_WAIT_TIMEOUT|INTERACTION_PROCESS_LOST/);
  });

  test('--sticky adds one edge that is marked as an extension, and changes no other', async () => {
    const plain = JSON.parse((await run(['contract'])).stdout) as Contract;
    const sticky = JSON.parse((await run(['contract', '--sticky'])).stdout) as Contract;
    expect(sticky.edges.slice(0, -1)).toEqual(plain.edges);
    expect(sticky.edges.at(-1)).toMatchObject({
      id: 'S01',
      from: 'waiting_user',
      on: 'turn.failed',
      guard: 'sticky',
      to: 'failed',
      extension: 'sticky',
    });
    expect(sticky.run_errors.map(({ code }) => code)).toEqual([
      ...plain.run_errors.map(({ code }) => code),
      'INTERACTION_WAIT_TIMEOUT',
      'INTERACTION_PROCESS_LOST',
    ]);
    expect({ ...sticky, edges: [], run_errors: [] }).toEqual({ ...plain, edges: [], run_errors: [] });
  });
});

describe('help and version', () => {
  test('--help names every command', async () => {
    const { code, stdout, stderr } = await run(['--help']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    for (const command of ['parse', 'contract', 'demo']) expect(stdout).toContain(command);
  });

  test('parse --help has its options and an example to copy', async () => {
    const { code, stdout } = await run(['parse', '--help']);
    expect(code).toBe(0);
    for (const { name } of ENGINES) expect(stdout).toContain(name);
    for (const option of [
      '--engine',
      '--stderr',
      '--exit',
      '--mode',
      '--resumed-from',
      '--prompt',
      '--fcmp',
      '--stats',
      '--reproducible',
      'Examples:',
    ])
      expect(stdout).toContain(option);
  });

  // Found by PARLEY_SEED=20261117, case 357 of the arguments.
  test('a shell that is called like a part of every object is not known', async () => {
    for (const shell of ['__proto__', 'toString', 'constructor'])
      expect(await run(['completion', '--', shell])).toMatchObject({
        code: 2,
        stdout: '',
        stderr: expect.stringContaining('The shells are bash, zsh, fish.') as string,
      });
  });

  test('the help of run and the completion name every engine', async () => {
    for (const args of [
      ['run', '--help'],
      ['completion', 'bash'],
      ['completion', 'zsh'],
      ['completion', 'fish'],
    ]) {
      const { code, stdout } = await run(args);
      expect({ args, code }).toEqual({ args, code: 0 });
      for (const { name } of ENGINES)
        expect(stdout, args.join(' ')).toMatch(new RegExp(`(?<![\\w-])${name}(?![\\w-])`));
    }
  });

  test('--version prints the version of the package and nothing else', async () => {
    const { version } = JSON.parse(await readFile(new URL('../../package.json', import.meta.url), 'utf8')) as {
      version: string;
    };
    expect(await run(['--version'])).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' });
  });
});

// Every usage error: exit code 2, nothing on stdout, and no stack trace.
async function mistake(args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await run(args, PLAIN);
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).not.toMatch(/\n\s+at /);
  return stderr;
}

describe('mistakes', () => {
  test('an engine that does not exist is answered with those that do', async () => {
    const said = await mistake(['parse', '--engine', 'cursor']);
    expect(said).toContain('cursor');
    expect(said).toContain('claude, codex, codex-app-server, gemini, iflow, opencode, rehearsal');
  });

  test('an option with a slip in it is named, with the right one', async () => {
    const said = await mistake(['parse', '--engin', 'codex']);
    expect(said).toContain('There is no option --engin. Did you mean --engine?');
    expect(said).toContain('parley parse --help');
  });

  test('options that exclude each other, and empty session ids, are refused', async () => {
    expect(await mistake(['parse', '-e', 'codex', '--stats', '--fcmp'])).toContain('--fcmp');
    expect(await mistake(['parse', '-e', 'codex', '--resumed-from', ''])).toContain('must not be empty');
  });

  test('a missing engine is answered with the name of the option', async () => {
    const said = await mistake(['parse']);
    for (const { name } of ENGINES) expect(said).toContain(name);
    expect(said).toContain('--engine');
  });

  test('an exit that is neither a code nor a signal is refused with the accepted values', async () => {
    for (const exit of ['abc', '256', '-1', '1.5', '', 'SIGFOO', '0x1']) {
      const said = await mistake(['parse', '--engine', 'codex', `--exit=${exit}`]);
      expect(said, exit).toContain('0 to 255');
      expect(said, exit).toContain('SIGTERM');
    }
  });

  test('a mode that does not exist is answered with the two that do', async () => {
    expect(await mistake(['parse', '--engine', 'codex', '--mode', 'batch'])).toContain('interactive, auto');
  });

  test('a stderr file that cannot be read is named with the reason, before anything is printed', async () => {
    const missing = join(folder, 'missing.log');
    const said = await mistake(['parse', '--engine', 'codex', '--stderr', missing]);
    expect(said).toContain(missing);
    expect(said).toContain('it does not exist');
    const directory = await mistake(['parse', '--engine', 'codex', '--stderr', folder]);
    expect(directory).toContain(folder);
    expect(directory).toContain('it is a folder');
  });

  test('an unknown command, option or word is named, with the way to the help', async () => {
    for (const [args, name] of [
      [['pars'], 'pars'],
      [['parse', '--engin', 'codex'], '--engin'],
      [['contract', 'now'], 'now'],
    ] as const) {
      const said = await mistake(args);
      expect(said.includes(name) || name === 'now').toBe(true);
      expect(said).toContain('--help');
    }
  });
});

// The built program itself: its arguments, its sessions, and that it only follows its script.
import { mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { findEngine } from '../../src/engines/registry.js';
import { buildFirstPrompt, buildReplyPrompt } from '../../src/run/turn-prompt.js';
import { parse, type Parsed } from '../support/parse.js';
import { recordSleeps } from '../support/recorded-sleeps.js';
import { playRehearsal, type RehearsalTurn } from '../support/rehearsal.js';

const homes: string[] = [];
afterAll(() => {
  for (const home of homes) rmSync(home, { recursive: true, force: true });
});

function createHome(): string {
  const home = realpathSync(mkdtempSync(join(tmpdir(), 'parley-rehearsal-')));
  homes.push(home);
  return home;
}

async function turn(home: string, prompt: string, args: readonly string[] = []): Promise<RehearsalTurn & Parsed> {
  const turn = await playRehearsal(home, args, prompt);
  return { ...turn, ...parse('rehearsal', turn) };
}

// A session that was started with this prompt, and its continuation.
async function begin(prompt: string): Promise<(reply: string) => Promise<RehearsalTurn & Parsed>> {
  const home = createHome();
  const { evidence } = await turn(home, prompt);
  return (reply) => turn(home, reply, ['--session', evidence.sessionId ?? '']);
}

const decided = (decision: string) => buildReplyPrompt({ decision });
const tools = ({ drafts }: Parsed) =>
  drafts.filter(({ type }) => type === 'tool.call.completed').map(({ data }) => (data as { status: string }).status);

describe.concurrent('arguments', () => {
  test('--version prints the version that the probe expects', async () => {
    const { probe } = findEngine('rehearsal');
    const { exit, stdout } = await playRehearsal(createHome(), probe.versionArgs);
    expect([exit.code, probe.parseVersion(stdout.toString())]).toEqual([0, probe.provedVersion]);
  });

  test.each([['--yolo'], ['word'], ['--session'], ['--permission', 'some'], ['--session', 'a', '--new-session', 'b']])(
    '%s %s is refused with the usage and code 2',
    async (...args) => {
      const { exit, stdout, stderr } = await playRehearsal(
        createHome(),
        args.filter((part) => part !== undefined),
        'x',
      );
      expect({ code: exit.code, stdout: stdout.length }).toEqual({ code: 2, stdout: 0 });
      expect(stderr.toString()).toMatch(/^Error: .*\nusage: /s);
    },
  );

  test.each(['5ce7e000-0000-4000-8000-00000000000f', '../../secret', 'latest', ''])(
    'the unknown session "%s" is refused on stderr with code 1',
    async (id) => {
      const { exit, stdout, stderr } = await playRehearsal(createHome(), [`--session=${id}`], '[[done]]');
      expect([exit.code, stdout.length, stderr.toString()]).toEqual([1, 0, `Error: session ${id} not found\n`]);
    },
  );

  test('a session is never begun twice, and a damaged one is not continued', async () => {
    const home = createHome();
    const id = '5ce7e000-0000-4000-8000-000000000002';
    expect((await turn(home, '[[ask Why?]]', ['--new-session', id])).exit.code).toBe(0);
    expect((await turn(home, '[[done]]', ['--new-session', id])).exit.code).toBe(1);
    expect((await turn(home, '[[done]]', ['--session', id])).exit.code).toBe(0);
    writeFileSync(join(home, `.parley-rehearsal/sessions/${id}.json`), '{"id":');
    expect((await turn(home, '[[done]]', ['--session', id])).exit.code).toBe(1);
  });
});

describe.concurrent('the scene', () => {
  test('asks when Parley says how to ask, and decides itself when Parley says not to', async () => {
    const asks = await turn(createHome(), buildFirstPrompt('interactive', 'Tidy up.'));
    expect(asks.evidence).toMatchObject({
      success: true,
      done: null,
      questions: [{ kind: 'choose_one', channel: 'native' }],
    });
    expect(asks.drafts.map(({ type }) => type)).toEqual(
      expect.arrayContaining(['agent.message.delta', 'tool.call.completed']),
    );
    expect(asks.stdout.toString()).toContain('You asked for \\"Tidy up.\\".');
    const decides = await turn(createHome(), buildFirstPrompt('auto', 'Tidy up.'));
    expect(decides.evidence).toMatchObject({ success: true, done: { result: { rehearsal: true } }, questions: [] });
  });

  test('takes up the answer, whatever it is, and is done', async () => {
    for (const [response, answer] of [
      ['Quickly', 'Quickly'],
      [{ a: [1] }, '{"a":[1]}'],
      ['', '(the answer was left empty)'],
    ] as const) {
      const resume = await begin('Tidy up.');
      const { evidence, stdout } = await resume(buildReplyPrompt(response as never));
      expect(evidence).toMatchObject({ success: true, done: { result: { rehearsal: true, answer } } });
      expect(stdout.toString()).toContain(JSON.stringify(`You answered "${answer}".`).slice(1, -1));
    }
  });

  test('directives are obeyed even when Parley says not to ask', async () => {
    expect((await turn(createHome(), buildFirstPrompt('auto', '[[ask Why?]]'))).evidence.questions).toHaveLength(1);
  });
});

describe.concurrent('sessions', () => {
  test('a directive that killed or refused its turn is skipped, and the following ones are played', async () => {
    const resume = await begin('[[ask Why?]][[crash]][[ask Really?]][[refuse]][[done 1]]');
    expect((await resume('so')).exit.signal).toBe('SIGKILL');
    expect((await resume('so')).evidence.questions).toMatchObject([{ prompt: 'Really?' }]);
    const refused = await resume('so');
    expect([refused.exit.code, refused.stdout.length]).toEqual([1, 0]);
    expect((await resume('so')).evidence.done).toEqual({ result: 1 });
  });

  test('the directives of a reply come first, and a refused one leaves the script as it was', async () => {
    const resume = await begin('[[ask Why?]][[done 1]]');
    expect((await resume('[[refuse]]')).exit.code).toBe(1);
    expect((await resume('[[fail]]')).evidence.failure).not.toBeNull();
    const { evidence, drafts } = await resume('[[answer first]]');
    expect(evidence.done).toEqual({ result: 1 });
    expect(drafts.filter(({ type }) => type === 'agent.message.final')).toMatchObject([
      { data: { text: 'first' } },
      {},
    ]);
  });

  test('othersession names another session once resumed, nosession none', async () => {
    const resume = await begin('[[othersession]][[ask Why?]][[othersession]]');
    const other = await resume('so');
    expect(other.evidence.sessionId).toMatch(/^[0-9a-f-]{36}$/);
    expect((await resume('[[nosession]]')).evidence.sessionId).toBeNull();
    const own = await resume('[[answer x]]');
    expect(own.evidence.sessionId).not.toBeNull();
    expect(own.evidence.sessionId).not.toBe(other.evidence.sessionId);
  });
});

describe.concurrent('approvals', () => {
  test.each([
    ['approve', ['completed'], 1],
    ['approve_for_session', ['completed'], 1],
    ['decline', ['declined'], 1],
    ['cancel', ['declined'], null],
    ['perhaps', ['declined'], 1],
  ])('%s plays the command as %s, and then the rest', async (decision, statuses, result) => {
    const resume = await begin('[[approve rm -r build]][[done 1]]');
    const turn = await resume(decided(decision));
    expect(tools(turn)).toEqual(statuses);
    expect(turn.evidence).toMatchObject({ success: true, done: result === null ? null : { result } });
  });

  test('plain text is no approval', async () => {
    const resume = await begin('[[approve rm -r build]][[done 1]]');
    expect(tools(await resume('approve'))).toEqual(['declined']);
  });

  test('a command approved for the session is not asked for again, any other is', async () => {
    const resume = await begin('[[approve a]][[ask Next?]][[approve a]][[approve b]][[done 1]]');
    expect(tools(await resume(decided('approve_for_session')))).toEqual(['completed']);
    const next = await resume('go');
    expect(tools(next)).toEqual(['completed']);
    expect(next.evidence.questions).toMatchObject([{ kind: 'approval', prompt: expect.stringContaining('\nb') }]);
  });
});

test.concurrent('nothing is executed or written but the session, bound to no directory', async () => {
  const home = createHome();
  const { evidence, exit } = await turn(
    home,
    '[[tool touch a.txt]][[file b.txt]][[orphan]][[approve touch c.txt]][[tool touch d.txt]]',
    ['--permission', 'full'],
  );
  expect(exit.code).toBe(0);
  await turn(home, decided('approve'), ['--permission', 'full', '--session', evidence.sessionId ?? '']);
  expect(readdirSync(home, { recursive: true, encoding: 'utf8' }).toSorted()).toEqual([
    '.parley-rehearsal',
    '.parley-rehearsal/sessions',
    `.parley-rehearsal/sessions/${evidence.sessionId}.json`,
  ]);
  expect(readFileSync(join(home, `.parley-rehearsal/sessions/${evidence.sessionId}.json`), 'utf8')).not.toContain(home);
});

test('it cannot execute anything: it imports only text, time, paths, files and JSON', () => {
  const folder = new URL('../../src/rehearsal/', import.meta.url).pathname;
  const imports = readdirSync(folder).flatMap((file) =>
    [...readFileSync(join(folder, file), 'utf8').matchAll(/(?:from|import|require)\s*\(?\s*'([^']+)'/g)].map(
      ([, name = '']) => name,
    ),
  );
  expect([...new Set(imports.filter((name) => !name.startsWith('./')))].toSorted()).toEqual([
    '../files/read-file.js',
    '../kernel/json.js',
    'node:crypto',
    'node:fs',
    'node:os',
    'node:path',
    'node:stream/consumers',
    'node:timers/promises',
    'node:util',
  ]);
});

test.concurrent('a file is declined under read-only', async () => {
  const { drafts } = await turn(createHome(), '[[file b.txt]]', ['--permission', 'read-only']);
  expect(drafts.map(({ type }) => type)).not.toContain('artifact.file.changed');
});

test.concurrent('[[events]] prints as many messages of that size', async () => {
  const { counts, drafts, evidence } = await turn(createHome(), '[[events 500 1000]]');
  expect(counts).toMatchObject({ fallbacks: 0, units: 503 });
  expect(drafts.filter(({ type }) => type === 'agent.message.final')).toHaveLength(500);
  expect(evidence.lastMessage).toBe('x'.repeat(1000));
});

test.concurrent('[[sleep]] pauses for that many milliseconds', async () => {
  const home = createHome();
  const { env, lengths } = recordSleeps(home);
  const { exit } = await playRehearsal(home, [], '[[sleep 300]]', env);
  expect(exit.code).toBe(0);
  expect(lengths()).toContain(300);
});

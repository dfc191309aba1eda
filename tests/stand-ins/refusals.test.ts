// The stand-ins refuse the calls that the real CLIs refuse, in the same way: nothing on stdout, same exit code and
// stderr.
import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { once } from 'node:events';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import {
  commandOf,
  createPlace,
  finish,
  judge,
  loggedStarts,
  runArgv,
  runTurn,
  sessionOf,
  STAND_INS,
  start,
  type Place,
  type Ran,
  type StandIn,
} from '../support/stand-in.js';

const UNKNOWN = {
  codex: '01a1e065-0000-7fd2-a5f7-dea3d46cd55c',
  gemini: '11111111-2222-3333-4444-555555555555',
  iflow: 'session-11111111-2222-3333-4444-555555555555',
  opencode: 'ses_e1f95a0c7ffeRt2byWmJuXXXXX',
};

const CODEX = ['exec', '--json', '--skip-git-repo-check'];
const GEMINI = ['-o', 'stream-json'];
const TRUSTED = { env: { GEMINI_CLI_TRUST_WORKSPACE: 'true' } };

function expectRefusal(ran: Ran, code: number, message: string | RegExp): void {
  expect({ code: ran.code, stdout: ran.stdout.toString() }).toEqual({ code, stdout: '' });
  expect(ran.stderr.toString()).toMatch(message);
}

function conversation({ stderr }: Ran): string | undefined {
  return /"conversation-id": "(.+)"/.exec(stderr.toString())?.[1];
}

function fork(place: Place, id: string): Promise<Ran> {
  return runArgv('codex', place, [...CODEX, '-C', place.cwd, '-s', 'read-only', 'fork', id, 'go on']);
}

// The same folder under another path.
function elsewhere(place: Place): Place {
  const cwd = join(place.root, 'other');
  mkdirSync(cwd);
  return { ...place, cwd };
}

describe.concurrent.each(STAND_INS)('%s', (engine) => {
  test('a session that does not exist is refused', async () => {
    const place = createPlace();
    // Without any session, Gemini prints another message.
    if (engine === 'gemini') await runTurn(engine, place, 'first');
    const turn = await runTurn(engine, place, 'go on', { resume: UNKNOWN[engine] });
    expectRefusal(
      turn,
      engine === 'gemini' ? 42 : 1,
      {
        codex: new RegExp(
          '^Error: thread/resume: thread/resume failed: no rollout found for thread id ' +
            '01a1e065-0000-7fd2-a5f7-dea3d46cd55c \\(code -32600\\)$',
          'm',
        ),
        gemini: new RegExp(
          '^Error resuming session: Invalid session identifier "11111111-2222-3333-4444-555555555555"\\.\n' +
            '  Searched for sessions in .*/\\.gemini/tmp/work/chats\\.\n',
        ),
        iflow: /not found/,
        opencode: '\u001b[91m\u001b[1mError: \u001b[0mSession not found\n',
      }[engine] as string,
    );
    expect(turn.verdict.reasonCode).toBe('SESSION_NOT_CONFIRMED');
    expect(loggedStarts(place).at(-1)).toMatchObject({ resumed: true, session: UNKNOWN[engine] });
  });

  test('an unknown option is refused, and the start is still recorded', async () => {
    const place = createPlace();
    const args: Record<StandIn, string[]> = {
      codex: [...CODEX, '--nonsense', 'x'],
      gemini: [...GEMINI, '--nonsense'],
      iflow: ['--nonsense', '-p', 'x'],
      opencode: ['run', '--format', 'json', '--nonsense'],
    };
    expectRefusal(await runArgv(engine, place, args[engine], TRUSTED), engine === 'codex' ? 2 : 1, /nonsense/);
    expect(loggedStarts(place)).toMatchObject([
      { engine, argv: args[engine], session: null, resumed: false, stdin: null },
    ]);
  });

  test('no prompt at all is refused', async () => {
    const args: Record<StandIn, string[]> = {
      codex: CODEX,
      gemini: GEMINI,
      iflow: ['--yolo'],
      opencode: ['run', '--format', 'json'],
    };
    const ran = await runArgv(engine, createPlace(), args[engine], TRUSTED);
    expectRefusal(ran, engine === 'gemini' ? 42 : 1, /No (prompt|input) provided via stdin|must provide a message/);
  });
});

describe.concurrent('codex', () => {
  test('the directory and the sandbox come before the word resume, never after it', async () => {
    const place = createPlace();
    const session = sessionOf(await runTurn('codex', place, 'first'));
    for (const option of [
      ['-C', place.cwd],
      ['-s', 'read-only'],
    ]) {
      expectRefusal(
        await runArgv('codex', place, [...CODEX, 'resume', ...option, session, 'go on']),
        2,
        `unexpected argument '${option[0]}' found`,
      );
    }
    const ran = await runArgv('codex', place, [
      'exec',
      '--skip-git-repo-check',
      '-C',
      place.cwd,
      'resume',
      '--json',
      session,
      'go on',
    ]);
    expect(judge('codex', ran, { resumedFrom: session }).verdict.event).toBe('turn.needs_input');
  });

  test('an id that is no UUID silently starts a new thread', async () => {
    const place = createPlace();
    const turn = judge('codex', await runArgv('codex', place, [...CODEX, 'resume', 'not-a-uuid', 'go on']), {
      mode: 'auto',
    });
    expect(turn).toMatchObject({
      code: 0,
      verdict: { event: 'turn.succeeded', result: 'You said: go on\nEarlier turns: 0.' },
    });
    expect(turn.evidence.sessionId).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7/);
  });

  test('a directory that is not there, one outside git and a sandbox that does not exist are refused', async () => {
    const place = createPlace();
    expectRefusal(
      await runArgv('codex', place, [...CODEX, '-C', '/nonexistent', 'say hello']),
      1,
      /^Error: No such file or directory \(os error 2\)$/m,
    );
    expectRefusal(
      await runArgv('codex', place, ['exec', '--json', 'say hello']),
      1,
      /^Not inside a trusted directory and --skip-git-repo-check was not specified\.$/m,
    );
    expectRefusal(await runArgv('codex', place, [...CODEX, '-s', 'full', 'say hello']), 2, /invalid value 'full'/);
  });

  test('a thread can be continued in another directory', async () => {
    const place = createPlace();
    const session = sessionOf(await runTurn('codex', place, 'first'));
    expect((await runTurn('codex', elsewhere(place), 'go on', { resume: session })).evidence.lastMessage).toContain(
      'Earlier turns: 1.',
    );
  });

  test('an ephemeral thread cannot be continued', async () => {
    const place = createPlace();
    const session = sessionOf(judge('codex', await runArgv('codex', place, [...CODEX, '--ephemeral', 'say hello'])));
    expectRefusal(await runTurn('codex', place, 'go on', { resume: session }), 1, /no rollout found/);
  });

  test('a stdin that stays open blocks a start with its prompt as an argument, until it is closed', async () => {
    const place = createPlace();
    const command = commandOf('codex', place, 'say hello');
    expect(command.stdin).toBeNull();
    const child = start(command, place, { keepOpen: true });
    let began = false;
    child.stdout.once('data', () => (began = true));
    const ended = finish(child);
    await once(child.stderr, 'data');
    expect(loggedStarts(place)).toHaveLength(1);
    // A whole other turn takes longer than the rest of this one would.
    await runTurn('codex', place, 'say hello');
    expect(began).toBe(false);
    child.stdin.end();
    expect(judge('codex', await ended).verdict.event).toBe('turn.needs_input');
  });

  test('a resume with its prompt as an argument does not read stdin', async () => {
    const place = createPlace();
    const session = sessionOf(await runTurn('codex', place, 'first'));
    const child = start(commandOf('codex', place, 'go on', { resume: session }), place, { keepOpen: true });
    expect((await finish(child)).code).toBe(0);
    expect(loggedStarts(place).at(-1)).toMatchObject({ stdin: null, resumed: true });
  });
});

describe.concurrent('codex exec fork', () => {
  test('starts a thread with another id and the same history, and leaves its source unchanged', async () => {
    const place = createPlace();
    const session = sessionOf(await runTurn('codex', place, 'first [[ask Which?]][[done 1]]'));
    // Both run the remaining script.
    const forked = judge('codex', await fork(place, session));
    expect(forked.verdict).toMatchObject({ event: 'turn.succeeded', result: 1 });
    const id = sessionOf(forked);
    expect(id).not.toBe(session);
    expect(loggedStarts(place).at(-1)).toMatchObject({ resumed: false, session: id, stdin: null });
    expect((await runTurn('codex', place, 'that one', { resume: session })).verdict).toMatchObject({
      event: 'turn.succeeded',
      result: 1,
    });
    const resumed = await runTurn('codex', place, 'go on', { resume: id, mode: 'auto' });
    expect(resumed).toMatchObject({
      evidence: { sessionId: id },
      verdict: { result: 'You said: go on\nEarlier turns: 2.' },
    });
    const again = judge('codex', await fork(place, id), { mode: 'auto' });
    expect(again.verdict).toMatchObject({ result: 'You said: go on\nEarlier turns: 3.' });
  });

  test('refuses a thread that it does not find, an id that is none, and options behind the word', async () => {
    const place = createPlace();
    expectRefusal(
      await fork(place, UNKNOWN.codex),
      1,
      new RegExp(
        '^Error: thread/fork: thread/fork failed: no rollout found for thread id ' +
          '01a1e065-0000-7fd2-a5f7-dea3d46cd55c \\(code -32600\\)$',
        'm',
      ),
    );
    expectRefusal(await fork(place, 'not-a-uuid'), 1, /^Error: Session not found: not-a-uuid$/m);
    expectRefusal(
      await runArgv('codex', place, [...CODEX, 'fork', '-C', place.cwd, UNKNOWN.codex, 'go on']),
      2,
      /unexpected argument '-C' found/,
    );
  });

  test('needs the file of its source thread', async () => {
    const place = createPlace();
    const session = sessionOf(await runTurn('codex', place, 'first'));
    const id = sessionOf(judge('codex', await fork(place, session)));
    const sessions = join(place.root, '.codex', 'sessions');
    for (const name of readdirSync(sessions, { recursive: true, encoding: 'utf8' }))
      if (name.endsWith(`${session}.jsonl`)) rmSync(join(sessions, name));
    expectRefusal(
      await fork(place, id),
      1,
      new RegExp(
        `^Error: thread/fork: thread/fork failed: invalid paginated history lineage for ${id}: missing source rollout`,
        'm',
      ),
    );
  });
});

describe.concurrent('gemini', () => {
  test('a session is refused in any other directory', async () => {
    const place = createPlace();
    const session = sessionOf(await runTurn('gemini', place, 'first'));
    const turn = await runTurn('gemini', elsewhere(place), 'go on', { resume: session });
    expectRefusal(turn, 42, /^Error resuming session: No previous sessions found for this project\.\n$/);
  });

  test('a session id that is taken is refused', async () => {
    const place = createPlace();
    const session = sessionOf(await runTurn('gemini', place, 'first'));
    expectRefusal(
      await runTurn('gemini', place, 'second', { newSessionId: session }),
      42,
      /already exists\. Use --resume/,
    );
  });

  test('the id that was chosen is the id of the session', async () => {
    const newSessionId = 'b7a1c0de-0000-4000-8000-000000000001';
    expect(sessionOf(await runTurn('gemini', createPlace(), 'first', { newSessionId }))).toBe(newSessionId);
  });

  test('a directory that is not trusted is refused', async () => {
    expectRefusal(
      await runArgv('gemini', createPlace(), GEMINI, { stdin: 'hello' }),
      55,
      /^\u001b\[31mGemini CLI is not running in a trusted directory\./,
    );
    expect((await runArgv('gemini', createPlace(), [...GEMINI, '--skip-trust'], { stdin: 'hello' })).code).toBe(0);
  });

  test('a prompt with a leading dash is no argument', async () => {
    expectRefusal(
      await runArgv('gemini', createPlace(), [...GEMINI, '-p', '--- text'], TRUSTED),
      1,
      /Not enough arguments following: p/,
    );
  });

  test('a prompt as an argument comes behind the one of stdin, and stdin need not be there', async () => {
    const both = await runArgv('gemini', createPlace(), [...GEMINI, '-p', 'b'], { ...TRUSTED, stdin: 'a' });
    expect(both.stdout.toString()).toContain('"content":"a\\n\\n\\nb"');
    expect((await runArgv('gemini', createPlace(), [...GEMINI, '-p', 'b'], TRUSTED)).code).toBe(0);
  });

  test.each(['read-only', 'workspace-write'] as const)(
    'with the permission %s a shell is not offered',
    async (permission) => {
      const turn = await runTurn('gemini', createPlace(), '[[tool echo hi]][[done 1]]', { permission });
      expect(turn.stdout.toString()).toContain('"type":"tool_not_registered"');
      expect(turn.verdict).toMatchObject({ event: 'turn.succeeded' });
    },
  );

  test('a command with a substitution is blocked, and called a success', async () => {
    const turn = await runTurn('gemini', createPlace(), '[[tool echo $(date)]][[done 1]]');
    expect(turn.stdout.toString()).toContain(
      '"status":"success","output":"Blocked: command substitution detected in shell command."',
    );
  });
});

describe.concurrent('opencode', () => {
  test('a resume from another directory hangs silently, unless it names the directory of the session', async () => {
    const place = createPlace();
    const session = sessionOf(await runTurn('opencode', place, 'first'));
    const other = elsewhere(place);
    const { argv } = commandOf('opencode', place, 'go on', { resume: session });
    expect((await finish(start({ argv, cwd: other.cwd, stdin: 'go on', env: {} }, place))).code).toBe(0);

    const child = start(commandOf('opencode', other, 'go on', { resume: session }), other);
    const ended = finish(child);
    // It has long read its prompt when a later second prompt has passed.
    await runTurn('opencode', place, 'go on', { resume: session });
    expect(child.exitCode).toBeNull();
    child.kill('SIGTERM');
    expect(await ended).toMatchObject({ signal: 'SIGTERM', stdout: Buffer.alloc(0) });
  });

  test('a malformed session id is not found', async () => {
    const ran = await runArgv('opencode', createPlace(), ['run', '--format', 'json', '--session', '../../x'], {
      stdin: 'go on',
    });
    expectRefusal(ran, 1, /Session not found/);
  });

  test('a message as an argument reaches the model in quotes', async () => {
    const ran = await runArgv('opencode', createPlace(), ['run', '--format', 'json', 'say "hello"']);
    expect(judge('opencode', ran).evidence.lastMessage).toContain('You said: "say \\"hello\\""');
  });

  test('with the permission read-only a shell is not offered', async () => {
    const turn = await runTurn('opencode', createPlace(), '[[tool echo hi]][[done 1]]', { permission: 'read-only' });
    expect(turn.stdout.toString()).toContain('"tool":"invalid"');
    expect(turn.verdict).toMatchObject({ event: 'turn.succeeded' });
  });

  test('a permission that would have to be asked for stops the run with exit code 0', async () => {
    const place = createPlace();
    const env = { OPENCODE_CONFIG_CONTENT: '{"permission":{"bash":"ask"}}' };
    const turn = judge(
      'opencode',
      await runArgv('opencode', place, ['run', '--format', 'json'], { stdin: '[[tool echo hi]][[done 1]]', env }),
    );
    expect(turn).toMatchObject({ code: 0, verdict: { reasonCode: 'LAST_STEP_TOOL_CALLS' } });
    expect(turn.stderr.toString()).toContain('permission requested: bash (echo hi); auto-rejecting');
    expect(
      (
        await runArgv('opencode', place, ['run', '--format', 'json', '--auto'], {
          stdin: '[[tool echo hi]][[done 1]]',
          env,
        })
      ).stdout.toString(),
    ).toContain('"output":"hi\\n"');
  });
});

describe.concurrent('iflow', () => {
  test('a session is refused in any other directory', async () => {
    const place = createPlace();
    const session = sessionOf(await runTurn('iflow', place, 'first'));
    expectRefusal(await runTurn('iflow', elsewhere(place), 'go on', { resume: session }), 1, /not found/);
  });

  test('a prompt with a leading dash is no argument of its own', async () => {
    expectRefusal(await runArgv('iflow', createPlace(), ['-p', '--help me']), 1, /Not enough arguments following: p/);
  });

  test('in plan mode the tools that change something are missing, with exit code 0', async () => {
    const turn = await runTurn('iflow', createPlace(), '[[tool echo hi]][[file a.txt]]', { permission: 'read-only' });
    expect(turn.code).toBe(0);
    expect(turn.stderr.toString()).toContain(
      'Error executing tool run_shell_command: Tool "run_shell_command" not found in registry.\nError executing ' +
        'tool write_file: ',
    );
  });

  test('the conversation id changes with every process, the session id does not', async () => {
    const place = createPlace();
    const first = await runTurn('iflow', place, 'first');
    const second = await runTurn('iflow', place, 'second', { resume: sessionOf(first) });
    expect(sessionOf(second)).toBe(sessionOf(first));
    expect(conversation(second)).not.toBe(conversation(first));
    expect(second.stderr.toString()).toMatch(
      /^\nℹ️ {2}Resuming session session-[0-9a-f-]+ \(2 messages loaded\)\n\n<Execution Info>\n/,
    );
  });
});

test.concurrent('a reader that goes away ends a stand-in', async () => {
  const place = createPlace();
  const child = start(commandOf('codex', place, 'go [[events 1000000 1000]]'), place);
  child.stdout.destroy();
  child.stderr.destroy();
  await once(child, 'exit');
});

// One turn of each stand-in, by directive: the real parser understands its output, and the judgement is correct.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { recordSleeps } from '../support/recorded-sleeps.js';
import { dataOf, ofType, warningsOf } from '../support/parse.js';
import { createPlace, judge, loggedStarts, runTurn, sessionOf, STAND_INS, type Turn } from '../support/stand-in.js';

// The parser understood all of the output.
function expectUnderstood({ counts, evidence }: Turn): void {
  expect({ fallbacks: counts.fallbacks, missed: counts.units - counts.parsed }).toEqual({ fallbacks: 0, missed: 0 });
  expect(evidence.sessionId).not.toBeNull();
}

function toolsOf({ drafts }: Turn): object[] {
  return dataOf(drafts, 'tool.call.completed');
}

describe.concurrent.each(STAND_INS)('%s', (engine) => {
  test('without directives the answer repeats the prompt and says that there was no earlier turn', async () => {
    const turn = await runTurn(engine, createPlace(), 'Say hello', { mode: 'auto' });
    expectUnderstood(turn);
    expect(turn.code).toBe(0);
    expect(turn.verdict).toMatchObject({
      event: 'turn.succeeded',
      reasonCode: 'ENGINE_SUCCESS',
      result: 'You said: Say hello\nEarlier turns: 0.',
    });
  });

  test('[[answer]] is a message, several follow each other, and an interactive run then waits', async () => {
    const turn = await runTurn(engine, createPlace(), 'ignored [[answer one]] ignored [[answer two]]');
    expectUnderstood(turn);
    expect(turn.verdict).toMatchObject({ event: 'turn.needs_input', reasonCode: 'TURN_OVER_NOT_DONE' });
    expect(
      dataOf(turn.drafts, 'agent.message.final')
        .map(({ text }) => text)
        .join('\n'),
    ).toBe('one\ntwo');
  });

  test('[[ask]] asks, and the turn ends well; an auto run cannot have it', async () => {
    const turn = await runTurn(engine, createPlace(), '[[ask Which database?|Postgres|SQLite]][[done 1]]');
    expectUnderstood(turn);
    expect(turn.code).toBe(0);
    expect(turn.verdict).toMatchObject({ event: 'turn.needs_input', reasonCode: 'QUESTION_ASKED' });
    expect(turn.question).toMatchObject({
      prompt: 'Which database?',
      kind: 'choose_one',
      channel: engine === 'iflow' ? 'envelope' : 'tool',
      options: [{ label: 'Postgres' }, { label: 'SQLite' }],
    });
    expect(turn.evidence).toMatchObject({ success: true, done: null });
    expect(judge(engine, turn, { mode: 'auto' }).error).toMatchObject({
      code: 'AUTO_MODE_CANNOT_ASK',
      details: { unanswered: { prompt: 'Which database?' } },
    });
  });

  test('[[done]] ends the run with its result; [[othersession]] and [[refuse]] do nothing in turn 1', async () => {
    const turn = await runTurn(engine, createPlace(), '[[refuse]][[othersession]][[done {"files":[[2]]}]]');
    expectUnderstood(turn);
    expect(turn.verdict).toMatchObject({
      event: 'turn.succeeded',
      reasonCode: 'DONE_MARKER',
      result: { files: [[2]] },
    });
  });

  test('[[tool]] really runs its command in the working directory; one that fails does not fail the turn', async () => {
    const place = createPlace();
    const turn = await runTurn(engine, place, '[[tool echo made > made.txt; cat made.txt]][[tool exit 3]]', {
      mode: 'auto',
    });
    expectUnderstood(turn);
    expect(readFileSync(join(place.cwd, 'made.txt'), 'utf8')).toBe('made\n');
    const both = [
      { kind: 'command', status: 'completed', output: expect.stringContaining('made') },
      { kind: 'command' },
    ];
    // iFlow does not report its tools.
    expect(toolsOf(turn)).toMatchObject(engine === 'iflow' ? [] : both);
    if (engine === 'codex' || engine === 'opencode')
      expect(toolsOf(turn)).toMatchObject([{ exit_code: 0 }, { exit_code: 3 }]);
    expect(turn.verdict).toMatchObject({
      event: 'turn.succeeded',
      result: expect.stringMatching(/Done\.\nEarlier turns: 0\.$/),
    });
  });

  test('[[file]] really writes a file and reports it', async () => {
    const place = createPlace();
    const turn = await runTurn(engine, place, '[[file notes.txt]][[done 1]]', { permission: 'workspace-write' });
    expectUnderstood(turn);
    expect(readFileSync(join(place.cwd, 'notes.txt'), 'utf8')).toBe('notes.txt\n');
    const reported = engine !== 'iflow';
    expect(toolsOf(turn)).toMatchObject(reported ? [{ kind: 'file_change', status: 'completed' }] : []);
    expect(dataOf(turn.drafts, 'artifact.file.changed')).toEqual(
      reported ? [{ path: join(place.cwd, 'notes.txt'), kind: engine === 'gemini' ? 'unknown' : 'add' }] : [],
    );
  });

  test('with the permission read-only [[file]] writes nothing, and the turn continues', async () => {
    const place = createPlace();
    const turn = await runTurn(engine, place, '[[file notes.txt]][[done 1]]', { permission: 'read-only' });
    expectUnderstood(turn);
    expect(existsSync(join(place.cwd, 'notes.txt'))).toBe(false);
    expect(turn.verdict).toMatchObject({ event: 'turn.succeeded' });
    expect(ofType(turn.drafts, 'artifact.file.changed')).toEqual([]);
  });

  test('[[events]] prints as many lines of that size, small ones and large ones', async () => {
    const turn = await runTurn(engine, createPlace(), '[[events 401 100]][[events 3 1000000]][[answer over]]');
    expectUnderstood(turn);
    const lines = turn.stdout.toString().split('\n');
    expect(lines.filter((line) => /x{100}/.test(line)).length).toBeGreaterThanOrEqual(300);
    expect(lines.filter((line) => line.length >= 1_000_000).length).toBeGreaterThanOrEqual(2);
    // Other output of a turn: for Codex, start, turn, answer and end.
    const others = { codex: 4, gemini: 4, iflow: 2, opencode: 3 }[engine];
    expect(turn.counts.units).toBe(404 + others);
    expect(turn.verdict).toMatchObject({ event: 'turn.needs_input' });
  });

  test('[[fail]] is the failure of the engine itself, with its exit code', async () => {
    const turn = await runTurn(engine, createPlace(), '[[fail]]');
    expectUnderstood(turn);
    expect(turn.code).toBe({ codex: 1, gemini: 244, iflow: 0, opencode: 1 }[engine]);
    expect(turn.error).toMatchObject({ code: 'ENGINE_TURN_FAILED' });
  });

  test('[[exit0]] ends with code 0 and no sign of success', async () => {
    const turn = await runTurn(engine, createPlace(), '[[answer half]][[exit0]][[answer never]]');
    expect(turn.code).toBe(0);
    expect(turn.error).toMatchObject({ code: 'COMPLETION_UNKNOWN' });
    expect(turn.evidence.lastMessage ?? 'half').toMatch(/half$/);
    expect(turn.verdict.reasonCode).toBe(
      { codex: 'NO_TURN_COMPLETED', gemini: 'NO_RESULT', iflow: 'NO_EXECUTION_INFO', opencode: 'NO_STEP_FINISH' }[
        engine
      ],
    );
  });

  test('[[nosession]] names no session, so nobody can be waited for', async () => {
    const turn = await runTurn(engine, createPlace(), '[[nosession]][[ask Why?]]');
    expect(turn.code).toBe(0);
    expect(turn.evidence.sessionId).toBeNull();
    expect(turn.counts.fallbacks).toBe(0);
    expect(turn.error).toMatchObject({ code: 'SESSION_RESUME_FAILED' });
    expect(turn.verdict.reasonCode).toBe('HANDLE_MISSING');
  });

  test('[[utf8]] prints multi-byte text on stdout and an invalid byte on stderr, [[stderr]] its lines', async () => {
    const turn = await runTurn(engine, createPlace(), '[[stderr 50]][[utf8]]', { mode: 'auto' });
    expectUnderstood(turn);
    expect(turn.verdict).toMatchObject({ event: 'turn.succeeded', result: 'Grüße 漢字 e\u0301 a\u2028b 👩‍👩‍👧 🚀' });
    const stderr = turn.stderr.toString('latin1').split('\n');
    expect(stderr).toContain('\u00ff');
    expect(stderr.filter((line) => /^stand-in: line \d+ of 50$/.test(line))).toHaveLength(50);
    expect(warningsOf(turn.drafts)).toContain('STDERR_TEXT');
  });

  test('[[sleep]] pauses for that many milliseconds', async () => {
    const place = createPlace();
    const { env, lengths } = recordSleeps(place.root);
    const paused = { ...place, env: { ...place.env, ...env } };
    const turn = await runTurn(engine, paused, '[[sleep 400]]', { mode: 'auto' });
    expect(lengths()).toContain(400);
    expect(turn.verdict).toMatchObject({ event: 'turn.succeeded', result: 'Done.\nEarlier turns: 0.' });
  });

  test('[[crash]] dies by SIGKILL after its output, and every start is recorded', async () => {
    const place = createPlace();
    const session = sessionOf(await runTurn(engine, place, '[[answer x]]'));
    const crashed = await runTurn(engine, place, 'then [[answer half]][[crash]][[done 1]]', { resume: session });
    expect(crashed).toMatchObject({ code: null, signal: 'SIGKILL' });
    expect(crashed.stdout.toString()).toContain('half');
    expect(crashed.evidence.done).toBeNull();
    expect(crashed.error).toMatchObject({ code: 'ENGINE_EXITED' });
    const [start, resume, ...more] = loggedStarts(place);
    expect(more).toEqual([]);
    expect(start).toMatchObject({
      engine,
      cwd: place.cwd,
      session,
      resumed: false,
      env: { PARLEY_TURN: 'run_1/1', HOME: place.root },
    });
    expect(resume).toMatchObject({ engine, session, resumed: true });
    expect(resume?.pid).not.toBe(start?.pid);
    expect(resume?.stdin ?? resume?.argv.at(-1)).toBe('then [[answer half]][[crash]][[done 1]]');
  });
});

// Turns that continue a session in a new process.
import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createPlace, runTurn, sessionOf, STAND_INS } from '../support/stand-in.js';

describe.concurrent.each(STAND_INS)('%s', (engine) => {
  test('directives after an [[ask]] are played after the reply, with the right count of earlier turns', async () => {
    const place = createPlace();
    const asked = await runTurn(engine, place, '[[ask Which?|a|b]][[answer one]][[ask Sure?]][[done {"ok":true}]]');
    const session = sessionOf(asked);
    const again = await runTurn(engine, place, 'b', { resume: session });
    expect(again.evidence.sessionId).toBe(session);
    expect(again.counts.fallbacks).toBe(0);
    expect(again.question).toMatchObject({ prompt: 'Sure?' });
    expect(again.stdout.toString()).toContain('one');
    const done = await runTurn(engine, place, 'yes', { resume: session });
    expect(done.evidence.sessionId).toBe(session);
    expect(done.verdict).toMatchObject({ event: 'turn.succeeded', reasonCode: 'DONE_MARKER', result: { ok: true } });
    const after = await runTurn(engine, place, 'thanks', { resume: session, mode: 'auto' });
    expect(after.verdict).toMatchObject({ event: 'turn.succeeded', result: 'You said: thanks\nEarlier turns: 3.' });
  });

  test('a kept step that killed or refused its turn is skipped, and the following ones are played', async () => {
    const place = createPlace();
    const session = sessionOf(await runTurn(engine, place, '[[ask Why?]][[crash]][[ask Really?]][[refuse]][[done 1]]'));
    const resume = { resume: session };
    expect(await runTurn(engine, place, 'so', resume)).toMatchObject({ signal: 'SIGKILL' });
    expect(await runTurn(engine, place, 'so', resume)).toMatchObject({ verdict: { reasonCode: 'QUESTION_ASKED' } });
    const refused = await runTurn(engine, place, 'so', resume);
    expect(refused).toMatchObject({
      code: engine === 'gemini' ? 42 : 1,
      error: { code: 'SESSION_RESUME_FAILED' },
      verdict: { reasonCode: 'SESSION_NOT_CONFIRMED' },
    });
    expect(refused.stdout.length).toBe(0);
    expect(await runTurn(engine, place, 'so', resume)).toMatchObject({
      verdict: { reasonCode: 'DONE_MARKER', result: 1 },
    });
  });

  test('directives of a reply go first: [[nosession]] confirms no session, [[othersession]] another one', async () => {
    const place = createPlace();
    const session = sessionOf(await runTurn(engine, place, '[[ask Why?]][[done 1]]'));
    const silent = await runTurn(engine, place, '[[nosession]][[exit0]]', { resume: session });
    expect(silent.verdict.reasonCode).toBe('SESSION_NOT_CONFIRMED');
    const other = await runTurn(engine, place, '[[othersession]][[answer first]]', { resume: session });
    expect(other.code).toBe(0);
    expect(sessionOf(other)).not.toBe(session);
    expect(other).toMatchObject({
      error: { code: 'SESSION_RESUME_FAILED' },
      verdict: { reasonCode: 'SESSION_CHANGED' },
    });
    expect(other.stdout.toString()).toContain('first');
    // Run after the directives of the reply.
    expect(other.evidence.done).toEqual({ result: 1 });
  });

  test('a session outlives a first turn that was killed', async () => {
    const place = createPlace();
    const killed = await runTurn(engine, place, '[[answer half]][[crash]]');
    // iFlow names its session only at the end, but it has one.
    const session =
      killed.evidence.sessionId ?? /session-[^/]+(?=\.jsonl$)/.exec(filesOf(place.root)[0] ?? '')?.[0] ?? '';
    const turn = await runTurn(engine, place, 'go on', { resume: session, mode: 'auto' });
    expect(turn.verdict).toMatchObject({ event: 'turn.succeeded', result: 'You said: go on\nEarlier turns: 1.' });
  });

  test('the session is kept in the home of the engine, where the real one keeps it', async () => {
    const place = createPlace();
    const variable = { codex: 'CODEX_HOME', gemini: 'GEMINI_CLI_HOME', iflow: 'HOME', opencode: 'XDG_DATA_HOME' }[
      engine
    ];
    const home = join(place.root, 'private');
    mkdirSync(home);
    const session = sessionOf(await runTurn(engine, { ...place, env: { ...place.env, [variable]: home } }, 'first'));
    const files = filesOf(home);
    expect(files).toHaveLength(1);
    expect(files[0]).toMatch(
      {
        codex: new RegExp(String.raw`^sessions/\d{4}/\d\d/\d\d/rollout-[\dT-]+-${session}\.jsonl$`),
        gemini: new RegExp(String.raw`^\.gemini/tmp/work/chats/session-[\dT-]+-${session.slice(0, 8)}\.jsonl$`),
        iflow: new RegExp(
          String.raw`^\.iflow/projects/${place.cwd.replaceAll(/[^A-Za-z0-9]/g, '-')}/${session}\.jsonl$`,
        ),
        opencode: new RegExp(String.raw`^opencode/storage/session/${session}\.jsonl$`),
      }[engine],
    );
    expect((await runTurn(engine, place, 'again', { resume: session })).verdict.reasonCode).toBe(
      'SESSION_NOT_CONFIRMED',
    );
  });
});

// Its list of projects is one file for all.
test.concurrent('concurrent turns of gemini in one new home keep to their own sessions and directories', async () => {
  const place = createPlace();
  const cwds = ['a/work', 'b/work', 'c/work'].map((name) => join(place.root, name));
  for (const cwd of cwds) mkdirSync(cwd, { recursive: true });
  const asked = await Promise.all(
    cwds.map((cwd, index) => runTurn('gemini', place, `[[ask Number?]][[done ${index}]]`, { cwd })),
  );
  const done = await Promise.all(
    cwds.map((cwd, index) => runTurn('gemini', place, 'yes', { cwd, resume: asked[index]?.evidence.sessionId ?? '' })),
  );
  expect(done.map(({ verdict }) => verdict)).toMatchObject([{ result: 0 }, { result: 1 }, { result: 2 }]);
});

function filesOf(root: string): string[] {
  return readdirSync(root, { recursive: true, encoding: 'utf8' }).filter(
    (name) => name.endsWith('.jsonl') && name !== 'starts.jsonl',
  );
}

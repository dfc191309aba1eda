// The stand-ins accept the commands that the engines build, and the probe finds the version it knows.
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { findEngine } from '../../src/engines/registry.js';
import { commandOf, createPlace, loggedStarts, runTurn, sessionOf, STAND_INS } from '../support/stand-in.js';

const BIN = new URL('./bin/', import.meta.url).pathname;
const LONG = `${'x'.repeat(300_000)} [[done 1]]`;

// Permission, prompt of the start, prompt of the resume.
const TURNS = [
  ['read-only', 'say hello [[done 1]]', LONG],
  ['workspace-write', LONG, '--help [[done 1]]'],
  ['full', '[[done]]', `'"\`$HOME\n\n\\ é [[done 1]]`],
] as const;

// The id of a new session differs each time.
function comparable(argv: readonly string[]): string[] {
  return argv.map((part, index) => (argv[index - 1] === '--session-id' ? 'ID' : part));
}

describe.concurrent.each(STAND_INS)('%s', (engine) => {
  test.each(TURNS)(
    'takes the command of a start or resume with permission %s, a model, an output schema and any prompt',
    async (permission, first, second) => {
      const place = createPlace();
      const outputSchemaFile = join(place.root, 'schema.json');
      writeFileSync(outputSchemaFile, '{}');
      const options = { permission, model: 'fake/model-1', outputSchemaFile };
      const started = await runTurn(engine, place, first, options);
      expect(started.verdict).toMatchObject({ event: 'turn.succeeded', reasonCode: 'DONE_MARKER' });
      const again = { ...options, resume: sessionOf(started) };
      expect((await runTurn(engine, place, second, again)).verdict).toMatchObject({
        event: 'turn.succeeded',
        reasonCode: 'DONE_MARKER',
      });

      const commands = [commandOf(engine, place, first, options), commandOf(engine, place, second, again)];
      expect(loggedStarts(place).map(({ argv }) => comparable(argv))).toEqual(
        commands.map(({ argv }) => comparable(argv.slice(1))),
      );
      expect(loggedStarts(place).map(({ stdin }) => stdin)).toEqual(
        commands.map(({ stdin }) => stdin?.slice(0, 200) ?? null),
      );
    },
  );

  test('is a program under its own name, prints its version and is not recorded for that', () => {
    const { probe } = findEngine(engine);
    const ran = spawnSync(probe.binary, [...probe.versionArgs], {
      encoding: 'utf8',
      env: { PATH: `${BIN}:${process.env['PATH']}`, STAND_IN_LOG: '/nonexistent/log' },
    });
    expect({ code: ran.status, version: probe.parseVersion(ran.stdout) }).toEqual({
      code: 0,
      version: probe.provedVersion,
    });
  });
});

// Agent output on a real terminal, also as JSON, whose escapes leave out one-byte controls. Each command, whatever it
// shows.
import { stripVTControlCharacters } from 'node:util';
import { expect, test } from 'vitest';
import { restoreNamed } from '../../src/kernel/visible-text.js';
import { createSite, onTerminal, parley, untilFree } from '../support/command.js';

// Clears the screen, sets the title, fills the clipboard, moves the cursor, overwrites the line, reverses the
// direction.
const HOSTILE =
  '\u001b[2J\u001b]0;owned\u0007\u001b]52;c;cm0gLXJmIC8=\u0007\u009b2J\u009d0;owned\u009c' +
  '\u001bP1$r0m\u001b\\\rls\b\b\u007f\u202egnp.exe\u2066';
// Colours and the cursor are ours; one-byte controls and strings to the terminal never are.
const OBEYED = /[\u0080-\u009f\u007f\u0000\u0007\u0008\u202a-\u202e\u2066-\u2069]|\u001b[\]P_^X]|\u001b\[2J/;

test('no command lets an agent, prompt, label or file name control the terminal, as text or as JSON', async () => {
  const site = createSite();
  const made = await parley(site, [
    'run',
    'rehearsal',
    `${HOSTILE} [[answer ${HOSTILE}]] [[tool ${HOSTILE}]] [[file ${HOSTILE}]] [[stderr 1]] [[done ` +
      `"${HOSTILE.replaceAll(/[\u0000-\u001f]/g, '')}"]]`,
    '--scratch',
    '--label',
    `a=${HOSTILE}`,
    '--detach',
  ]);
  expect(made.code, made.stderr).toBe(0);
  await untilFree(site);
  for (const args of [
    ['show', 'last'],
    ['show', 'last', '--json'],
    ['watch', 'last'],
    ['watch', 'last', '--json'],
    ['watch', 'last', '--rasp', '--json'],
    ['watch', 'last', '--rasp', '--no-follow'],
    ['ls'],
    ['ls', '--json'],
    ['verify', 'last'],
    ['replay', 'last'],
    ['logs', 'last'],
    ['logs', 'last', '--event', '4'],
    ['show', HOSTILE.replaceAll('\0', '')],
    ['run', HOSTILE, 'x'],
  ]) {
    const terminal = onTerminal(site, args);
    await terminal.exit;
    expect(terminal.output(), args.join(' ')).not.toMatch(OBEYED);
    expect(stripVTControlCharacters(terminal.output()).length, args.join(' ')).toBeGreaterThan(10);
  }
  // The same values in another spelling. A program gets the stored bytes.
  const piped = await parley(site, ['watch', 'last', '--rasp', '--json']);
  expect(piped.stdout).toContain('\u009b');
  const terminal = onTerminal(site, ['show', 'last', '--json'], { cols: 10_000 });
  await terminal.exit;
  expect(JSON.parse(terminal.output())).toEqual(JSON.parse((await parley(site, ['show', 'last', '--json'])).stdout));
});

test('logs shows control characters by name on a terminal, and exact bytes to a pipe or with --raw', async () => {
  const site = createSite();
  const made = await parley(site, ['run', 'rehearsal', '[[answer \u009b31m\u200b\u202e]] [[done 1]]', '--scratch']);
  expect(made.code, made.stderr).toBe(0);
  const { stdout } = await parley(site, ['logs', 'last']);
  const terminal = onTerminal(site, ['logs', 'last'], { cols: 400 });
  await terminal.exit;
  const shown = terminal.output().replaceAll('\r\n', '\n');
  expect(stdout).toContain('\u009b31m\u200b\u202e');
  expect(shown).toContain('⟨U+009B⟩31m⟨U+200B⟩⟨U+202E⟩');
  expect(restoreNamed(shown)).toBe(stdout);
  const raw = onTerminal(site, ['logs', 'last', '--raw'], { cols: 400 });
  await raw.exit;
  expect(raw.output().replaceAll('\r\n', '\n')).toBe(stdout);
});

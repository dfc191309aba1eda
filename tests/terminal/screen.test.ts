import * as fc from 'fast-check';
import stringWidth from 'string-width';
import { expect, test } from 'vitest';
import { Screen } from '../../src/terminal/screen.js';
import { TinyTerminal } from '../support/tiny-terminal.js';
import { RUNS } from './fixtures.js';

function open(tty: boolean) {
  const terminal = new TinyTerminal(20, 3);
  const pieces: string[] = [];
  const screen = new Screen(
    (text) => {
      pieces.push(text);
      terminal.write(text);
    },
    { tty },
  );
  return { terminal, pieces, screen };
}

test('the status is below the text and moves down with it', () => {
  const { terminal, screen } = open(true);
  screen.write('one\n');
  screen.status('working');
  expect(terminal.text()).toBe('one\nworking');
  screen.write('two\n');
  expect(terminal.text()).toBe('one\ntwo\nworking');
  screen.status('working on');
  expect(terminal.text()).toBe('one\ntwo\nworking on');
  screen.status('ok');
  expect(terminal.text()).toBe('one\ntwo\nok');
  screen.status(null);
  expect(terminal.text()).toBe('one\ntwo\n');
});

test('when text ends mid-line, the status uses the next line, and the text continues in its place', () => {
  const { terminal, screen } = open(true);
  screen.status('working');
  screen.write('Hel');
  expect(terminal.text()).toBe('Hel\nworking');
  screen.status('still working');
  screen.write('lo 漢字');
  expect(terminal.text()).toBe('Hello 漢字\nstill working');
  screen.write('!\nnext');
  expect(terminal.text()).toBe('Hello 漢字!\nnext\nstill working');
  screen.status(null);
  screen.write(' one\n');
  expect(terminal.text()).toBe('Hello 漢字!\nnext one\n');
});

test('a line as wide as the screen is followed by the next', () => {
  const { terminal, screen } = open(true);
  screen.status('working');
  screen.write('x'.repeat(20));
  expect(terminal.text()).toBe(`${'x'.repeat(20)}\nworking`);
  screen.write('\ny');
  expect(terminal.text()).toBe(`${'x'.repeat(20)}\ny\nworking`);
});

test('colours of the text do not move the cursor', () => {
  const { terminal, screen } = open(true);
  screen.write('\u001b[31mred\u001b[39m');
  screen.status('working');
  screen.write('dish');
  expect(terminal.text()).toBe('reddish\nworking');
});

test('a status as wide as the screen allows leaves no trace', () => {
  const { terminal, screen } = open(true);
  screen.status('x'.repeat(19));
  screen.write('text\n');
  screen.status(null);
  expect(terminal.text()).toBe('text\n');
});

test('without a terminal there is only the text', () => {
  const { pieces, screen } = open(false);
  screen.status('working');
  screen.write('one\n');
  screen.status('working');
  screen.write('two');
  screen.status(null);
  expect(pieces).toEqual(['one\n', 'two']);
});

test('the same status again and no text write nothing', () => {
  const { pieces, screen } = open(true);
  screen.status(null);
  screen.status('a');
  screen.status('a');
  screen.write('');
  expect(pieces).toEqual(['a']);
});

test('whatever is written, the screen shows the text with the status below it, also at its last line', () => {
  const action = fc.oneof(
    fc.constantFrom('a', 'word ', '漢字', 'line\n', '\n', '🚀', 'x\ny', 'e\u0301').map((text) => ({ text })),
    fc.constantFrom(null, 'working', 'a longer status', '等待').map((status) => ({ status })),
  );
  fc.assert(
    fc.property(fc.array(action, { maxLength: 40 }), (actions) => {
      const { terminal, screen } = open(true);
      const bare = new TinyTerminal(20, 3);
      let status: string | null = null;
      let written = '';
      for (const each of actions) {
        if ('text' in each) {
          // Wrapped to the width, like all text.
          const full =
            stringWidth(written.slice(written.lastIndexOf('\n') + 1) + (each.text.split('\n')[0] ?? '')) > 20;
          const text = full ? `\n${each.text}` : each.text;
          screen.write(text);
          bare.write(text);
          written += text;
        } else {
          ({ status } = each);
          screen.status(status);
        }
        const apart = status !== null && written !== '' && !written.endsWith('\n') ? '\n' : '';
        // A status that was removed may leave an empty line, on which the text continues.
        expect(terminal.text().trimEnd()).toBe(`${bare.text()}${apart}${status ?? ''}`.trimEnd());
      }
    }),
    RUNS,
  );
});

test('other output starts on a line of its own', () => {
  const { terminal, screen } = open(true);
  screen.endLine();
  expect(terminal.text()).toBe('');
  screen.write('Hel');
  screen.status('working');
  screen.status(null);
  screen.endLine();
  screen.endLine();
  expect(terminal.text()).toBe('Hel\n');
});

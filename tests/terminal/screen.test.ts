import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { Screen } from '../../src/terminal/screen.js';
import { TinyTerminal } from '../support/tiny-terminal.js';
import { RUNS } from './fixtures.js';

function open(tty: boolean) {
  const terminal = new TinyTerminal(20);
  const pieces: string[] = [];
  const screen = new Screen((text) => {
    pieces.push(text);
    terminal.write(text);
  }, { tty });
  return { terminal, pieces, screen };
}

test('the status stands below the text and moves down with it', () => {
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

test('while a text stands in the middle of a line there is no status, and it comes back at the line end', () => {
  const { terminal, screen } = open(true);
  screen.status('working');
  screen.write('Hel');
  expect(terminal.text()).toBe('Hel');
  screen.status('still working');
  screen.write('lo');
  expect(terminal.text()).toBe('Hello');
  screen.write('\n');
  expect(terminal.text()).toBe('Hello\nstill working');
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

test('whatever is written, the screen shows the text with at most the status below it', () => {
  const action = fc.oneof(
    fc.constantFrom('a', 'word ', '漢字', 'line\n', '\n', '🚀', 'x\ny').map((text) => ({ text })),
    fc.constantFrom(null, 'working', 'a longer status', '等待').map((status) => ({ status })),
  );
  fc.assert(fc.property(fc.array(action, { maxLength: 30 }), (actions) => {
    const { terminal, screen } = open(true);
    const bare = new TinyTerminal(20);
    let status: string | null = null;
    let text = '';
    for (const each of actions) {
      if ('text' in each) {
        screen.write(each.text);
        bare.write(each.text);
        text += each.text;
      } else {
        ({ status } = each);
        screen.status(status);
      }
      const below = text === '' || text.endsWith('\n') ? (status ?? '') : '';
      expect(terminal.text()).toBe(bare.text() + below);
    }
  }), RUNS);
});

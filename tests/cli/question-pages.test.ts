// An approval is shown page by page; after the window was resized it begins again, so that no line is skipped.
import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { QuestionPages } from '../../src/cli/conversation/question-pages.js';
import { renderQuestion, type Question } from '../../src/terminal/question-text.js';
import { createIo } from '../support/io.js';

const PAGE = 8;
const PROMPT = Array.from({ length: 30 }, (_, index) => `line ${index} ${'word '.repeat(25)}`).join('\n');
const APPROVAL: Question = { kind: 'approval', prompt: PROMPT, options: [], channel: 'native' };

function open(question: Question = APPROVAL) {
  const streams = { stdin: new PassThrough(), stdout: new PassThrough(), stderr: new PassThrough() };
  const size = { rows: PAGE + 2 };
  const io = createIo(streams, {
    terminal: { stdin: true, stdout: true, stderr: true, columns: () => 100, rows: () => size.rows },
  });
  const style = { colour: false, width: 100 };
  const linesAt = (width: number): string[] => renderQuestion(question, { ...style, width }).split('\n');
  return { pages: new QuestionPages(question, style, io), style, size, linesAt };
}

// The rest, page by page.
function readRest(pages: QuestionPages): string[] {
  const lines: string[] = [];
  for (let count = 0; pages.hasMore(); count += 1) {
    if (count > 100) throw new Error('the pages do not end');
    lines.push(...pages.next().split('\n'));
  }
  return lines;
}

test('the pages after the first have all other lines and show how many are left', () => {
  const { pages, linesAt } = open();
  const lines = linesAt(100);
  expect([pages.hasMore(), pages.left()]).toEqual([true, `${lines.length - PAGE} more lines of ${lines.length}`]);
  expect(pages.next()).toBe(lines.slice(PAGE, 2 * PAGE).join('\n'));
  expect(pages.left()).toBe(`${lines.length - 2 * PAGE} more lines of ${lines.length}`);
  expect(readRest(pages)).toEqual(lines.slice(2 * PAGE));
  expect([pages.hasMore(), pages.left()]).toEqual([false, null]);
});

test.each([40, 160])('after a resize to %d columns all of it is shown again in the new width', (width) => {
  const { pages, style, linesAt } = open();
  pages.next();
  style.width = width;
  const lines = linesAt(width);
  expect(lines).not.toEqual(linesAt(100));
  expect(pages.next()).toBe(lines.slice(0, PAGE).join('\n'));
  expect([pages.hasMore(), pages.left()]).toEqual([true, `${lines.length - PAGE} more lines of ${lines.length}`]);
  expect(readRest(pages)).toEqual(lines.slice(PAGE));
  expect([pages.hasMore(), pages.left()]).toEqual([false, null]);
});

test('a resize after the last page shows it from the beginning, and it is not all shown until the end', () => {
  const { pages, style, linesAt } = open();
  readRest(pages);
  style.width = 40;
  expect(pages.next()).toBe(linesAt(40).slice(0, PAGE).join('\n'));
  expect(pages.hasMore()).toBe(true);
});

test('a window that only became higher or lower continues with the next line', () => {
  const { pages, size, linesAt } = open();
  const lines = linesAt(100);
  size.rows = 12 + 2;
  expect(pages.next()).toBe(lines.slice(PAGE, PAGE + 12).join('\n'));
  size.rows = 1;
  expect(pages.next()).toBe(lines.slice(PAGE + 12, PAGE + 12 + 5).join('\n'));
});

test('a single remaining line is counted as one, and only approvals have pages', () => {
  const { size, linesAt, pages } = open();
  size.rows = linesAt(100).length - PAGE - 1 + 2;
  pages.next();
  expect(pages.left()).toBe(`1 more line of ${linesAt(100).length}`);
  const other = open({ ...APPROVAL, kind: 'open_text' });
  expect([other.pages.hasMore(), other.pages.left()]).toEqual([false, null]);
});

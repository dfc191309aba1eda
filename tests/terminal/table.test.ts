import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { renderTable, type Column } from '../../src/terminal/table.js';
import { CONTROL, expectFits, hostile, plain, RUNS } from './fixtures.js';

const columns: Column[] = [
  { header: 'run', whole: true },
  { header: 'engine', droppable: true },
  { header: 'state', whole: true, ink: (cell) => (cell === 'failed' ? 'red' : null) },
  { header: 'age', align: 'right', droppable: true },
  { header: 'prompt' },
];
const rows = [
  ['run_01', 'codex', 'waiting_user', '3 m', '建立数据库并迁移所有的旧数据'],
  ['run_02', 'opencode', 'failed', '2 h 5 m', 'Fix the\nfailing test of the parser 🚀'],
  ['run_03', 'gemini', 'queued', '', ''],
];

test('columns are as wide as their content', () => {
  expect(renderTable(rows, columns, plain(200))).toBe(
    [
      'run     engine    state             age  prompt',
      'run_01  codex     waiting_user      3 m  建立数据库并迁移所有的旧数据',
      'run_02  opencode  failed        2 h 5 m  Fix the failing test of the parser 🚀',
      'run_03  gemini    queued',
      '',
    ].join('\n'),
  );
});

test('the widest column gives way first', () => {
  expect(renderTable(rows, columns, plain(60))).toBe(
    [
      'run     engine    state             age  prompt',
      'run_01  codex     waiting_user      3 m  建立数据库并迁移所…',
      'run_02  opencode  failed        2 h 5 m  Fix the failing te…',
      'run_03  gemini    queued',
      '',
    ].join('\n'),
  );
});

test('a narrow terminal drops optional columns, the last first, before it cuts an id', () => {
  expect(renderTable(rows, columns, plain(40))).toBe(
    [
      'run     engine    state         prompt',
      'run_01  codex     waiting_user  建立数…',
      'run_02  opencode  failed        Fix the…',
      'run_03  gemini    queued',
      '',
    ].join('\n'),
  );
  expect(renderTable(rows, columns, plain(28))).toBe(
    [
      'run     state         prompt',
      'run_01  waiting_user  建立…',
      'run_02  failed        Fix t…',
      'run_03  queued',
      '',
    ].join('\n'),
  );
});

test('colour changes no column', () => {
  const coloured = renderTable(rows, columns, { colour: true, width: 60 });
  expect(coloured).toContain('\u001b[31mfailed\u001b[39m');
  expect(coloured).toMatch(/^\u001b\[2mrun\u001b\[22m/);
  expect(coloured.replace(/\u001b\[\d+m/g, '')).toBe(renderTable(rows, columns, plain(60)));
});

test('never beyond the width, no blanks at the end, nothing that a terminal obeys', () => {
  const row = fc.tuple(hostile(), hostile(), hostile(), hostile(), hostile());
  fc.assert(
    fc.property(fc.array(row, { maxLength: 4 }), fc.constantFrom(10, 20, 40, 80, 200), (rows, width) => {
      const text = renderTable(rows, columns, plain(width));
      expectFits(text, width);
      expect(text).not.toMatch(/ $/m);
      expect(text).not.toMatch(CONTROL);
      expect(text.split('\n')).toHaveLength(rows.length + 2);
    }),
    RUNS,
  );
});

test('a cell with an invisible character has its name once', () => {
  expect(renderTable([['a\u001bb']], [{ header: 'X' }], plain(40))).toBe('X\na⟨U+001B⟩b\n');
});

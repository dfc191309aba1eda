import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { descendantsOf, listMarked, readRow } from '../../src/process/process-table.js';
import { listPsRows, parsePs } from '../../src/process/ps-rows.js';
import { desk, fixture, Heard, marked, shell, specOf, start, startBystander } from './desk.js';

test('marked processes are listed with their parent, start time and mark; others are not', async () => {
  const heard = new Heard();
  const bystander = await startBystander({ NOT_PARLEY_TURN: 'x', OTHER: 'PARLEY_TURN=x' });
  const child = await start(specOf(shell('sleep 1000 & echo $!; wait')), heard);
  await heard.says('\n');
  const parent = { pid: child.pid, ppid: process.pid, startTime: child.startTime, mark: desk.mark };
  const [first, second] = marked().toSorted((a, b) => Number(a.ppid === child.pid) - Number(b.ppid === child.pid));
  expect(first).toEqual(parent);
  expect(second).toMatchObject({ pid: Number(heard.text.stdout), ppid: child.pid, mark: desk.mark });
  expect(listMarked().map(({ pid }) => pid)).not.toContain(bystander.pid);
  child.end('shutdown');
  await child.done;
});

test('a zombie is not listed', async () => {
  const heard = new Heard();
  // The inner shell becomes a sleep that never reaps its dead child.
  const child = await start(specOf(shell('true & echo $!; exec sleep 1000')), heard);
  await heard.says('\n');
  const zombie = Number(heard.text.stdout);
  while (readRow(zombie) !== null) await new Promise(setImmediate);
  expect(marked().map(({ pid }) => pid)).toEqual([child.pid]);
  expect(descendantsOf(child.pid)).toEqual([]);
  child.end('shutdown');
  await child.done;
});

test('descendants are found through all generations, whatever session they are in', async () => {
  const heard = new Heard();
  const child = await start(specOf(fixture('family', 'stay')), heard);
  await heard.says('family complete');
  const below = [...heard.text.stdout.matchAll(/^[12]:(\d+)$/gm)].map((match) => Number(match[1]));
  expect(
    descendantsOf(child.pid)
      .map(({ pid }) => pid)
      .toSorted(),
  ).toEqual(below.toSorted());
  child.end('shutdown');
  await child.done;
});

test('a program whose name looks like other fields is read right', async () => {
  const child = await start(specOf(shell(`cp /bin/sleep './a) S 1 1 (b' && exec './a) S 1 1 (b' 1000`)));
  while (!readFileSync(`/proc/${child.pid}/comm`, 'utf8').startsWith('a)')) await new Promise(setImmediate);
  expect(readRow(child.pid)).toEqual({
    pid: child.pid,
    ppid: process.pid,
    session: child.pid,
    startTime: child.startTime,
  });
  child.end('shutdown');
  await child.done;
});

test('what `ps` prints elsewhere is read too, without zombies', () => {
  const output =
    '    1     0     1 Ss   Sun Nov 15 12:00:00 2026\n  812     1   812 Z    Sun Nov 15 12:00:01 2026\n90210   ' +
    '812   800 S+   Sun Nov  1 09:05:07 2026    \n';
  expect(parsePs(output)).toEqual([
    { pid: 1, ppid: 0, session: 1, startTime: 'Sun Nov 15 12:00:00 2026' },
    { pid: 90210, ppid: 812, session: 800, startTime: 'Sun Nov  1 09:05:07 2026' },
  ]);
});

test('the real `ps` knows this process and who started it', () => {
  expect(listPsRows().find(({ pid }) => pid === process.pid)).toMatchObject({
    ppid: process.ppid,
    startTime: expect.stringMatching(/^\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4}$/),
  });
});

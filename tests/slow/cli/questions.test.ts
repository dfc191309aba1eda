// Questions answered in the terminal, line by line, while others may answer as well.
import { expect, test } from 'vitest';
import type { Pty } from '../../support/pty.js';
import {
  createSite,
  listRuns,
  onTerminal,
  parley,
  startDetached,
  untilFree,
  untilRun,
  withData,
  type Site,
} from '../../support/command.js';

async function run(prompt: string, cols = 80): Promise<{ site: Site; pty: Pty }> {
  const site = createSite();
  return { site, pty: onTerminal(site, ['run', 'rehearsal', prompt, '-i'], { cols }) };
}

async function answersOf(site: Site): Promise<unknown[]> {
  const [newest] = await listRuns(site);
  const lines = await withData(site, ({ store }) => store.readJournal(newest?.run_id ?? '', 'fcmp', { limit: 1000 }));
  return lines
    .map((line) => JSON.parse(line) as { type: string; data: { response: unknown } })
    .filter(({ type }) => type === 'interaction.reply.accepted')
    .map(({ data }) => data.response);
}

test('two questions in one run: an option by its number, then words of one’s own', async () => {
  const { site, pty } = await run('[[ask First?|Red|Blue]][[ask Second?|One|Two]][[done {"ok":1}]]');
  await pty.waitFor(/\? First\?[^]*1\)[^]*2\)[^]*1-2 or text /);
  pty.write('7\n');
  await pty.waitFor('there is no option 7: choose 1 to 2');
  await pty.waitFor('or text ');
  pty.write('2\n');
  await pty.waitFor(/answered by [^:]+: Blue[^]*\? Second\?/);
  await pty.waitFor('or text ');
  pty.write('neither of them\n');
  await pty.waitFor('answered by');
  await pty.waitFor('✓ done');
  expect(await pty.exit).toBe(0);
  expect(await answersOf(site)).toEqual(['Blue', 'neither of them']);
});

test('an answer of several lines, each but the last with a backslash at its end', async () => {
  const { site, pty } = await run('[[ask Tell me.]][[done 1]]');
  await pty.waitFor(/\? Tell me\.[^]*> /);
  pty.write('one\\\n');
  await pty.waitFor('… ');
  pty.write('two\n');
  expect(await pty.exit).toBe(0);
  expect(await answersOf(site)).toEqual(['one\ntwo']);
});

test('/finish ends a conversation in which nothing was asked, and nothing else', async () => {
  const { pty } = await run('[[answer All is well.]]');
  await pty.waitFor(/The agent ended its turn[^]*> /);
  pty.write('[[ask Really?|yes|no]]\n');
  await pty.waitFor(/\? Really\?[^]*or text /);
  pty.write('/finish\n');
  await pty.waitFor('the agent asked a question: answer it');
  await pty.waitFor('or text ');
  pty.write('1\n');
  await pty.waitFor(/The agent ended its turn[^]*> /);
  pty.write('/finish\n');
  expect(await pty.exit).toBe(0);
});

test('/later and the end of input leave the question waiting, /cancel ends the run', async () => {
  const { site, pty } = await run('[[ask Well?|yes]]');
  await pty.waitFor('or text ');
  pty.write('/later\n');
  expect(await pty.exit).toBe(3);
  expect(pty.output()).toMatch(/waiting for you: run_\w+\r\n {2}parley reply run_\w+/);
  const again = onTerminal(site, ['reply', 'last']);
  await again.waitFor(/\? Well\?[^]*or text /);
  again.write('\u0004');
  expect(await again.exit).toBe(3);
  const third = onTerminal(site, ['reply', 'last']);
  await third.waitFor('or text ');
  third.write('/cancel\n');
  await third.waitFor('canceled');
  expect(await third.exit).toBe(4);
  expect((await listRuns(site))[0]?.status).toBe('canceled');
  // There is nothing left to answer, and this is reported.
  const late = onTerminal(site, ['reply', 'last'], { cols: 200 });
  expect(await late.exit).toBe(1);
  expect(late.output()).toContain('No run is waiting for you.');
});

test('an approval takes only its own letters, with a note', async () => {
  const { site, pty } = await run('[[approve rm -rf build]][[approve make]][[done 1]]');
  await pty.waitFor(/permission: [^]*rm -rf build[^]*\[y\]es, for the \[s\]ession, \[n\]o, \[c\] no and stop/);
  pty.write('sure\n');
  await pty.waitFor('y approves, s approves for the whole session');
  await pty.waitFor('no and stop ');
  pty.write('n too much\n');
  await pty.waitFor('You declined this. The agent has been told.');
  await pty.waitFor(/declined by [^:]+: too much[^]*permission: [^]*make[^]*no and stop /);
  pty.write('y\n');
  expect(await pty.exit).toBe(0);
  expect(await answersOf(site)).toEqual([{ decision: 'decline', note: 'too much' }, { decision: 'approve' }]);
});

test('a number that is the text of one option and the number of another is asked again', async () => {
  const { site, pty } = await run('[[ask How many?|3|5|1]][[done 1]]');
  await pty.waitFor('or text ');
  pty.write('1\n');
  await pty.waitFor('that can mean option 3, "1" (type #3) or option 1, "3" (type #1): nothing was sent');
  await pty.waitFor('or text ');
  pty.write('#1\n');
  await pty.waitFor('Sent: "3" (option 1)');
  expect(await pty.exit).toBe(0);
  expect(await answersOf(site)).toEqual(['3']);
});

test('without a terminal it is refused with both readings, and --option and --value choose', async () => {
  const site = createSite();
  for (const [args, answer] of [
    [['--option', '1'], '3'],
    [['--value', '"1"'], '1'],
    [['5'], '5'],
  ] as const) {
    expect((await parley(site, ['run', 'rehearsal', '[[ask How many?|3|5|1]][[done 1]]', '-i'])).code).toBe(3);
    const refused = await parley(site, ['reply', 'last', '3']);
    expect(refused.code).toBe(2);
    expect(refused.stderr).toMatch(
      /that can mean option 1, "3" .* or option 3, "1" .*--option 1 sends "3", --option 3 sends "1"/,
    );
    const { code, stderr } = await parley(site, ['reply', 'last', ...args]);
    expect(code, stderr).toBe(0);
    expect(stderr).toContain(`Sent: "${answer}"`);
    expect(await answersOf(site)).toEqual([answer]);
  }
});

async function reviewsOf(site: Site): Promise<(string | undefined)[]> {
  const [newest] = await listRuns(site);
  const lines = await withData(site, ({ store }) => store.readJournal(newest?.run_id ?? '', 'rasp', { limit: 1000 }));
  const events = lines.map((line) => JSON.parse(line) as { event: { type: string }; data: { review?: string } });
  return events.filter(({ event }) => event.type === 'interaction.reply.accepted').map(({ data }) => data.review);
}

test('an approval longer than the screen is paged through, or approved unread in so many words', async () => {
  const command = Array.from({ length: 60 }, (_, index) => `echo line ${index}`).join('\n');
  const { site, pty } = await run(`[[approve ${command}]][[approve ${command}]][[approve ls]][[done 1]]`);
  await pty.waitFor(/permission: [^]*echo line 5[^]*more lines of[^]*approve unread/);
  expect(pty.output().split('asks for permission')[1]).not.toContain('echo line 59');
  pty.write('y\n');
  await pty.waitFor('you have not seen all of it');
  await pty.waitFor('approve unread');
  for (const [line, prompt] of [
    ['echo line 25', 'approve unread'],
    ['echo line 59', 'for the [s]ession'],
  ] as const) {
    pty.write('\n');
    await pty.waitFor(line);
    await pty.waitFor(prompt);
  }
  pty.write('y\n');
  await pty.waitFor(/approved by[^]*more lines of[^]*approve unread/);
  pty.write('y!\n');
  await pty.waitFor(/approved by[^]*not all of it was shown[^]*for the \[s\]ession/);
  pty.write('n\n');
  expect(await pty.exit).toBe(0);
  expect(await reviewsOf(site)).toEqual(['seen', 'unread', 'seen']);
});

const PASTE = (text: string) => `\u001b[200~${text}\u001b[201~`;

test('a pasted text of several lines is one answer, and its last line can be edited', async () => {
  const { site, pty } = await run('[[ask Tell me.]][[done 1]]');
  await pty.waitFor('\u001b[?2004h');
  await pty.waitFor('> ');
  pty.write(`see: ${PASTE('one\rtwo\r\u001b[31mthree\rfour')}`);
  await pty.waitFor('| see: one');
  await pty.waitFor('⟨U+001B⟩[31mthree');
  await pty.waitFor('pasted 4 lines; Enter sends, Ctrl-C discards');
  await pty.waitFor('four');
  pty.write('\u007f\u007fr\u007f\u007fif\u007fve\n');
  expect(await pty.exit).toBe(0);
  expect(await answersOf(site)).toEqual(['see: one\ntwo\n\u001b[31mthree\nfive']);
  expect(pty.output()).toContain('\u001b[?2004l');
});

test('a paste with the mark of its end inside sends nothing by itself; Ctrl-C discards it', async () => {
  const { site, pty } = await run('[[ask Tell me.]][[done 1]]');
  await pty.waitFor(/\? Tell me\.[^]*> /);
  pty.write(`${PASTE('evil\u001b[201~\rcommand\r')}`);
  await pty.waitFor('pasted 2 lines; Enter sends');
  expect(await answersOf(site)).toEqual([]);
  pty.interrupt();
  await pty.waitFor('The pasted text was discarded.');
  pty.write('good\n');
  expect(await pty.exit).toBe(0);
  expect(await answersOf(site)).toEqual(['good']);
});

test('a paste that is too long is refused whole, with the way out', async () => {
  const { site, pty } = await run('[[ask Tell me.]][[done 1]]');
  await pty.waitFor(/\? Tell me\.[^]*> /);
  pty.write(PASTE('x'.repeat(1_000_001)));
  await pty.waitFor('more than 1,000,000 characters: it was discarded');
  pty.write('short\n');
  expect(await pty.exit).toBe(0);
  expect(await answersOf(site)).toEqual(['short']);
});

test('text pasted before a question appears is not an answer to it', async () => {
  const { site, pty } = await run('[[sleep 1500]][[ask Tell me.|a]][[done 1]]');
  pty.write(PASTE('early\rlines\r'));
  await pty.waitFor(/\? Tell me\.[^]*or text /);
  pty.write('now\n');
  expect(await pty.exit).toBe(0);
  expect(await answersOf(site)).toEqual(['now']);
});

test('a command that is ended by a signal while it asks leaves the terminal as it was', async () => {
  const { pty } = await run('[[ask Tell me.]]');
  await pty.waitFor('\u001b[?2004h');
  await pty.waitFor('> ');
  pty.kill('SIGTERM');
  await pty.exit;
  expect(pty.output().lastIndexOf('\u001b[?2004l')).toBeGreaterThan(pty.output().lastIndexOf('\u001b[?2004h'));
});

test('a question that another process answers meanwhile: the prompt gives way and the run is watched on', async () => {
  const { site, pty } = await run('[[ask Which?|A|B]][[answer Thank you.]][[done 1]]');
  await pty.waitFor('or text ');
  pty.write('half an ans');
  await pty.waitFor('half an ans');
  await untilFree(site);
  expect((await parley(site, ['reply', 'last', '2'])).code).toBe(0);
  await pty.waitFor(/answered by [^:]+: B[^]*Thank you\.[^]*✓ done/);
  expect(await pty.exit).toBe(0);
  expect(await answersOf(site)).toEqual(['B']);
});

test('a run that another process cancels at its question ends for who was asked', async () => {
  const { site, pty } = await run('[[ask Which?|A|B]]');
  await pty.waitFor('or text ');
  await untilFree(site);
  expect((await parley(site, ['cancel', 'last'])).code).toBe(0);
  expect(await pty.exit).toBe(4);
});

test('an answer is kept for another try while somebody else has the directory', async () => {
  const { site, pty } = await run('[[ask Which?|A|B]][[done 1]]');
  await pty.waitFor('or text ');
  await untilFree(site);
  const other = await startDetached(site, 'rehearsal', '[[hang]]');
  pty.write('1\n');
  await pty.waitFor(/in use by process \d+, which works on\s+run_/);
  await pty.waitFor('or text ');
  expect((await parley(site, ['cancel', other])).code).toBe(0);
  await untilFree(site);
  pty.write('1\n');
  expect(await pty.exit).toBe(0);
});

test('an expired question is decided without the person if the run allows that', async () => {
  const site = createSite();
  const pty = onTerminal(site, [
    'run',
    'rehearsal',
    '[[ask Which?|A|B]][[done 1]]',
    '-i',
    '-o',
    'interactive_require_user_reply=false',
    '-o',
    'session_timeout_sec=1',
  ]);
  await pty.waitFor('✓ done');
  expect(await pty.exit).toBe(0);
  await untilRun(site, 'succeeded');
});

test('a prompt may be typed into the terminal', async () => {
  const pty = onTerminal(createSite(), ['run', 'rehearsal', '-', '--auto']);
  await pty.waitFor('end it with Ctrl-D');
  pty.write('[[answer From the keyboard.]]\n\u0004');
  await pty.waitFor(/\r\nFrom the keyboard\./);
  expect(await pty.exit).toBe(0);
});

test('a question of a run whose prompt was typed to its end waits, because nothing more can be typed', async () => {
  const pty = onTerminal(createSite(), ['run', 'rehearsal', '-']);
  await pty.waitFor('end it with Ctrl-D');
  pty.write('[[ask Which?|A]]\n\u0004');
  await pty.waitFor('parley reply run_');
  expect(await pty.exit).toBe(3);
});

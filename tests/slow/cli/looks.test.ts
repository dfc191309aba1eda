// The output fits the terminal, has colours only where they are wanted, and no engine output controls the screen.
import stringWidth from 'string-width';
import { stripVTControlCharacters } from 'node:util';
import { describe, expect, test } from 'vitest';
import { createSite, onTerminal, parley, startDetached, untilFree, untilRun } from '../../support/command.js';

const CHINESE = '请把存储设置好，然后告诉我结果。谢谢你的帮助！';
const FAMILY = '👩‍👩‍👧‍👦 🚀🚀🚀🚀🚀🚀🚀🚀🚀🚀🚀🚀🚀 e\u0301e\u0301';
const ESCAPE = /[\u001b\u009b]/;
const COLOUR = /\u001b\[\d+m/;

// Input that was typed line by line; ^C is the terminal's own echo.
function widths(output: string): { readonly text: string; readonly width: number }[] {
  return output
    .replaceAll('^C', '')
    .split(/\r?\n|\r/)
    .map((line) => stripVTControlCharacters(line))
    .map((text) => ({ text, width: stringWidth(text) }));
}

function expectFits(output: string, cols: number): void {
  // An id or a command to copy is wrapped by the terminal: it must stay in one piece.
  expect(widths(output).filter(({ text, width }) => width > cols && !/run_[0-9A-Z]{26}/.test(text))).toEqual([]);
}

describe('a terminal of 24 columns', () => {
  test('shows a conversation, a question and its answer in Chinese without a line that is too wide', async () => {
    const site = createSite();
    const pty = onTerminal(
      site,
      [
        'run',
        'rehearsal',
        `[[answer ${CHINESE}${FAMILY}]][[tool make ${'very-'.repeat(20)}long]][[file ` +
          `src/${'深'.repeat(30)}.ts]][[ask ${CHINESE}|${CHINESE}|${FAMILY}]][[done {"text":"${CHINESE}"}]]`,
        '-i',
      ],
      { cols: 24 },
    );
    await pty.waitFor('or text ');
    pty.interrupt();
    await pty.waitFor(/The question is\s+waiting\s+for\s+you\.[^]*> /);
    pty.write('\n');
    await pty.waitFor('or text ');
    pty.write('1\n');
    await pty.waitFor('✓ done');
    expect(await pty.exit).toBe(0);
    expectFits(pty.output(), 24);
    await untilFree(site);
    for (const command of ['show', 'watch']) {
      const shown = onTerminal(site, [command, 'last'], { cols: 24 });
      expect(await shown.exit).toBe(0);
      expect(shown.output()).toContain('请把存储设置好');
      expectFits(shown.output().slice(shown.output().indexOf('rehearsal · ')), 24);
    }
    const list = onTerminal(site, ['ls'], { cols: 24 });
    expect(await list.exit).toBe(0);
    expect(widths(list.output()).filter(({ width }) => width > 24)).toEqual([]);
  });

  test('asks what to do on Ctrl-C without a line that is too wide', async () => {
    const site = createSite();
    const pty = onTerminal(site, ['run', 'rehearsal', `[[answer ${CHINESE}]][[hang]]`], { cols: 24 });
    await pty.waitFor('谢谢你的');
    pty.interrupt();
    await pty.waitFor(/still\s+working\.[^]*> /);
    expectFits(pty.output(), 24);
    pty.write('c\n');
    expect(await pty.exit).toBe(4);
  });
});

describe('colours', () => {
  const prompt = '[[answer Hello.]][[tool make]][[ask Which?|A|B]]';

  test('are for a terminal, and not for one whose person said no or that has none', async () => {
    const site = createSite();
    await startDetached(site, 'rehearsal', prompt, '-i');
    await untilRun(site, 'waiting_user');
    await Promise.all(
      [['show', 'last'], ['ls'], ['verify', 'last'], ['doctor'], ['watch', 'last', '--no-follow']].map(async (args) => {
        const coloured = onTerminal(site, args, { env: { NO_COLOR: '' } });
        await coloured.exit;
        expect(coloured.output(), args[0]).toMatch(COLOUR);
      }),
    );
    await Promise.all(
      [
        { NO_COLOR: '1', TERM: 'xterm' },
        { NO_COLOR: '', TERM: 'dumb' },
      ].map(async (env) => {
        const plain = onTerminal(site, ['show', 'last'], { env });
        await plain.exit;
        expect(plain.output()).not.toMatch(COLOUR);
      }),
    );
  });

  test('and all other control sequences stay away from a pipe', async () => {
    const site = createSite();
    for (const args of [
      ['run', 'rehearsal', prompt, '-i'],
      ['show', 'last'],
      ['ls'],
      ['reply', 'last', '1'],
      ['verify', 'last'],
      ['doctor'],
      ['watch', 'last', '--no-follow'],
      ['--help'],
      ['run', 'nobody', 'hi'],
    ]) {
      const { stdout, stderr } = await parley(site, args);
      expect(stdout + stderr, args.join(' ')).not.toMatch(ESCAPE);
      expect(stdout + stderr).not.toContain('\r');
    }
    const forced = await parley(site, ['show', 'last'], { env: { FORCE_COLOR: '1' } });
    expect(forced.stdout).toMatch(COLOUR);
  });
});

test('an engine cannot control the terminal: no title, no colour, no moving cursor, no clearing', async () => {
  const site = createSite();
  const hostile =
    'A\u001b]0;stolen title\u0007B\u001b[31mC\u001b[2J\u001b[1;1HD\u009b5mE\u0008\u0008F\u001bP1$q\u001b\\G\rH\u202eI';
  const script =
    `[[answer ${hostile}]][[tool ${hostile}]][[file ${hostile}]][[ask ` +
    `${hostile}|${hostile}|B]][[done {"text":${JSON.stringify(hostile)}}]]`;
  const asked = await parley(site, ['run', 'rehearsal', '-', '-i', '-l', `name=${hostile}`], { stdin: script });
  expect(asked.code, asked.stderr).toBe(3);
  expect(asked.stdout).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202e]/);
  await untilFree(site);
  const reply = onTerminal(site, ['reply', 'last'], { cols: 70 });
  await reply.waitFor('or text ');
  reply.write('1\n');
  await reply.waitFor('✓ done');
  expect(await reply.exit).toBe(0);
  const outputs = [reply.output()];
  for (const command of ['show', 'watch', 'ls']) {
    const shown = onTerminal(site, command === 'ls' ? ['ls'] : [command, 'last'], { cols: 70 });
    await shown.exit;
    outputs.push(shown.output());
  }
  for (const output of outputs) {
    expect(output).not.toContain('\u001b]');
    expect(output).toContain('⟨U+001B⟩]0');
    // Only the output of Parley itself: its colours are off, so only the line editor and the status line remain.
    const sent = output.match(/\u001b(?:\[[0-?]*[ -/]*[@-~]|.)/g) ?? [];
    expect(
      [...new Set(sent)].filter((sequence) => !/^\u001b\[(?:\d*G|0?J|2K|\d*C|1A|0?K|\?2004[hl])$/.test(sequence)),
    ).toEqual([]);
    expect(output).not.toMatch(/[\u0000-\u0008\u000b\u000c\u000e-\u001a\u007f-\u009f\u202e]/);
  }
});

import { describe, expect, test } from 'vitest';
import { createDialogue, type Given } from '../../src/terminal/answer.js';
import type { Question } from '../../src/terminal/question-text.js';

const ask = (question: Partial<Question>): Question => ({ kind: 'open_text', prompt: 'What?', options: [], channel: 'tool', ...question });
const options = [{ label: 'Postgres', value: 'pg' }, { label: 'SQLite', value: { engine: 'sqlite' } }, { label: '漢字', value: 3 }];
const give = (question: Question, ...lines: string[]): Given => {
  const dialogue = createDialogue(question);
  return lines.map((line) => dialogue.give(line)).at(-1) ?? { kind: 'more' };
};
const reply = (response: unknown) => ({ kind: 'reply', response });
const problem = (text: string) => ({ kind: 'problem', message: expect.stringContaining(text) as string });

describe('a choice', () => {
  const choice = ask({ kind: 'choose_one', options });

  test.each([
    ['a number is that option', '2', { engine: 'sqlite' }],
    ['blanks around it do not matter', '  1 ', 'pg'],
    ['a label is its value', 'postgres', 'pg'],
    ['any label', '漢字', 3],
    ['anything else is free text', 'MySQL, please', 'MySQL, please'],
    ['a text that begins with a number is text', '2 of them', '2 of them'],
  ])('%s', (_, line, response) => {
    expect(give(choice, line)).toEqual(reply(response));
  });

  test.each(['0', '4', '99'])('%s is no option', (line) => {
    expect(give(choice, line)).toEqual(problem('choose 1 to 3'));
    expect(give(choice, line, '3')).toEqual(reply(3));
  });

  test('a label that is a number is found beyond the numbers of the options', () => {
    const ports = ask({ kind: 'choose_one', options: [{ label: '8080', value: 8080 }, { label: '1', value: 'one' }] });
    expect(give(ports, '8080')).toEqual(reply(8080));
    expect(give(ports, '1')).toEqual(reply(8080));
  });

  test('Enter takes the default, or is a problem', () => {
    expect(give(choice, '')).toEqual(problem('an answer is needed'));
    expect(give({ ...choice, default: 'pg' }, '')).toEqual(reply('pg'));
  });

  test('the prompt says what may be typed', () => {
    expect(createDialogue(choice).prompt()).toBe('1-3 or text > ');
    expect(createDialogue({ ...choice, default: 'pg' }).prompt()).toBe('1-3 or text Enter: pg > ');
  });
});

describe('a confirmation', () => {
  test.each([['y', true], ['YES', true], ['n', false], ['No', false], ['yes, but slowly', 'yes, but slowly']])('%s is %j', (line, response) => {
    expect(give(ask({ kind: 'confirm' }), line)).toEqual(reply(response));
  });

  test('takes its default', () => {
    expect(give(ask({ kind: 'confirm', default: false }), '')).toEqual(reply(false));
    expect(createDialogue(ask({ kind: 'confirm', default: false })).prompt()).toBe('y/n Enter: false > ');
  });

  test('with options of its own takes their numbers too', () => {
    const question = ask({ kind: 'confirm', options: [{ label: 'Go', value: 'go' }] });
    expect(give(question, '1')).toEqual(reply('go'));
    expect(give(question, 'n')).toEqual(reply(false));
  });
});

describe('a free text', () => {
  test('is taken as it is, numbers too', () => {
    expect(give(ask({}), '42')).toEqual(reply('42'));
    expect(give(ask({}), '/etc/hosts')).toEqual(reply('/etc/hosts'));
  });

  test('must not be empty unless there is a default', () => {
    expect(give(ask({}), '  ')).toEqual(problem('/later'));
    expect(give(ask({ default: { port: 80 } }), '')).toEqual(reply({ port: 80 }));
    expect(give(ask({ default: null }), '')).toEqual(problem('an answer is needed'));
  });

  test('goes on after a backslash at the line end', () => {
    const dialogue = createDialogue(ask({}));
    expect(dialogue.prompt()).toBe('> ');
    expect(dialogue.give('first\\')).toEqual({ kind: 'more' });
    expect(dialogue.prompt()).toBe('… ');
    expect(dialogue.give('\\')).toEqual({ kind: 'more' });
    expect(dialogue.give('/finish')).toEqual(reply('first\n\n/finish'));
  });

  test('two backslashes at the line end are text', () => {
    expect(give(ask({}), 'C:\\\\')).toEqual(reply('C:\\\\'));
  });
});

describe('several fields', () => {
  const form = ask({
    kind: 'fill_fields',
    prompt: 'Fill in',
    fields: [
      { id: 'db', kind: 'choose_one', prompt: 'Which\ndatabase?', options },
      { id: '__proto__', kind: 'open_text', prompt: 'Port?', options: [], default: 80 },
      { id: 'sure', kind: 'confirm', prompt: 'Sure?', options: [] },
    ],
  });

  test('are asked one by one and answered by their ids', () => {
    const dialogue = createDialogue(form);
    expect(dialogue.prompt()).toBe('1/3 Which database? 1-3 or text > ');
    expect(dialogue.give('9')).toEqual(problem('no option 9'));
    expect(dialogue.prompt()).toBe('1/3 Which database? 1-3 or text > ');
    expect(dialogue.give('1')).toEqual({ kind: 'more' });
    expect(dialogue.prompt()).toBe('2/3 Port? Enter: 80 > ');
    expect(dialogue.give('')).toEqual({ kind: 'more' });
    expect(dialogue.prompt()).toBe('3/3 Sure? y/n > ');
    const given = dialogue.give('y');
    expect(JSON.stringify(given)).toBe('{"kind":"reply","response":{"db":"pg","__proto__":80,"sure":true}}');
    expect(dialogue.give('again')).toEqual(problem('answered'));
  });

  test('can be left at any of them', () => {
    expect(give(form, '1', '/later')).toEqual({ kind: 'later' });
    expect(give(form, '1', '/cancel')).toEqual({ kind: 'cancel' });
  });
});

describe('an approval', () => {
  test.each([
    ['y', { decision: 'approve' }],
    ['Yes', { decision: 'approve' }],
    ['a', { decision: 'approve_for_session' }],
    ['always', { decision: 'approve_for_session' }],
    ['n', { decision: 'decline' }],
    ['c', { decision: 'cancel' }],
    ['n because it is Friday', { decision: 'decline', note: 'because it is Friday' }],
    ['y, this once', { decision: 'approve', note: 'this once' }],
    ['a: only here', { decision: 'approve_for_session', note: 'only here' }],
  ])('%s', (line, response) => {
    expect(give(ask({ kind: 'approval' }), line)).toEqual(reply(response));
  });

  test.each(['', 'a moment please', 'yep', 'nothing', '1', 'constructor'])('%j decides nothing', (line) => {
    expect(give(ask({ kind: 'approval', default: { decision: 'approve' } }), line)).toEqual(problem('y approves'));
  });
});

describe('commands', () => {
  test('/finish ends only a conversation in which nothing was asked', () => {
    expect(give(ask({ channel: 'conversation' }), '/finish ')).toEqual({ kind: 'finish' });
    // A slip is told; with a blank before it, it is an answer.
    for (const slip of ['/cancle', '/help']) expect(give(ask({ channel: 'conversation' }), slip)).toEqual(problem('/finish ends the conversation'));
    expect(give(ask({ channel: 'conversation' }), ' /help')).toEqual(reply('/help'));
    expect(give(ask({ channel: 'conversation' }), '/usr/bin')).toEqual(reply('/usr/bin'));
    expect(give(ask({ channel: 'tool' }), '/finish')).toEqual(problem('/cancel'));
  });

  test('/later and /cancel work for every question', () => {
    for (const kind of ['open_text', 'choose_one', 'confirm', 'approval'] as const) {
      expect(give(ask({ kind }), '/later')).toEqual({ kind: 'later' });
      expect(give(ask({ kind }), '/cancel')).toEqual({ kind: 'cancel' });
    }
  });

  test('a question of an engine cannot control the terminal by its prompt', () => {
    const form = ask({ fields: [{ id: 'a', kind: 'open_text', prompt: '\u001b]0;x\u0007Port\u001b[2J?', options: [], default: '\u001b[31m' }] });
    expect(createDialogue(form).prompt()).toBe('1/1 ⟨U+001B⟩]0;x⟨U+0007⟩Port⟨U+001B⟩[2J? Enter: ⟨U+001B⟩[31m > ');
  });
});

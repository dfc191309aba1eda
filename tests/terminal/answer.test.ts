import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { confirmSent, createDialogue, type DialogueResult } from '../../src/terminal/answer.js';
import type { Question } from '../../src/terminal/question-text.js';
import { runs } from '../support/runs.js';

const ask = (question: Partial<Question>): Question => ({
  kind: 'open_text',
  prompt: 'What?',
  options: [],
  channel: 'tool',
  ...question,
});
const options = [
  { label: 'Postgres', value: 'pg' },
  { label: 'SQLite', value: { engine: 'sqlite' } },
  { label: '漢字', value: 3 },
];
const give = (question: Question, ...lines: string[]): DialogueResult => {
  const dialogue = createDialogue(question);
  return lines.map((line) => dialogue.give(line)).at(-1) ?? { kind: 'more' };
};
const reply = (response: unknown) => expect.objectContaining({ kind: 'reply', response }) as DialogueResult;
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
    const ports = ask({
      kind: 'choose_one',
      options: [
        { label: '8080', value: 8080 },
        { label: '9090', value: 'nine' },
      ],
    });
    expect(give(ports, '9090')).toEqual(reply('nine'));
    expect(give(ports, '1')).toEqual(reply(8080));
  });

  describe('whose texts are numbers', () => {
    const numbers = ask({ kind: 'choose_one', options: ['3', '5', '1'].map((label) => ({ label, value: label })) });

    test.each(['1', '3'])('%s means two options, and nothing is sent', (line) => {
      expect(give(numbers, line)).toEqual(problem(`that can mean option`));
      expect(give(numbers, line)).toEqual(problem('(type #1)'));
      expect(give(numbers, line)).toEqual(problem('(type #3)'));
    });

    test('5 is the text of one option and the number of none', () => {
      expect(give(numbers, '5')).toEqual({ kind: 'reply', response: '5', sent: '"5" (option 2)' });
    });

    test('2 is the number of one option and the text of none', () => {
      expect(give(numbers, '2')).toEqual({ kind: 'reply', response: '5', sent: '"5" (option 2)' });
    });

    test.each([
      [
        'begins the text of another option',
        [
          ['2.0', 'b'],
          ['1.0', 'a'],
        ],
        '2',
      ],
      [
        'is the value of another option',
        [
          ['Blue', '2'],
          ['Red', 1],
        ],
        '1',
      ],
      [
        'begins a text with a unit',
        [
          ['2 hours', 'long'],
          ['1 hour', 'short'],
        ],
        '2',
      ],
    ] as const)('a number that %s means two options', (_, labels, line) => {
      const question = ask({ kind: 'choose_one', options: labels.map(([label, value]) => ({ label, value })) });
      expect(give(question, line)).toEqual(problem('that can mean option'));
      expect(give(question, line, '#1')).toEqual(reply(labels[0][1]));
    });

    test('a number in front of each text is its place', () => {
      const steps = ask({
        kind: 'choose_one',
        options: ['1. Stop', '2. Go on', '10 steps'].map((label) => ({ label, value: label })),
      });
      expect([give(steps, '1'), give(steps, '2'), give(steps, '3')]).toEqual([
        reply('1. Stop'),
        reply('2. Go on'),
        reply('10 steps'),
      ]);
    });

    test('# and quotes say which is meant', () => {
      expect(give(numbers, '1', '#1')).toEqual(reply('3'));
      expect(give(numbers, '1', '#3')).toEqual(reply('1'));
      expect(give(numbers, '1', '"1"')).toEqual(reply('1'));
      expect(give(numbers, '#9')).toEqual(problem('no option 9'));
    });

    test('a number that is its own text is that option', () => {
      expect(
        give(
          ask({
            options: [
              { label: '1', value: 'one' },
              { label: '2', value: 'two' },
            ],
          }),
          '2',
        ),
      ).toEqual(reply('two'));
    });
  });

  describe('whose texts differ by case', () => {
    const alike = ask({
      kind: 'choose_one',
      options: ['Beta', 'beta', 'Gamma'].map((label) => ({ label, value: `${label}!` })),
    });

    test('the exact text wins', () => {
      expect(give(alike, 'beta')).toEqual(reply('beta!'));
      expect(give(alike, 'Beta')).toEqual(reply('Beta!'));
    });

    test('another case is taken only if one option has it', () => {
      expect(give(alike, 'GAMMA')).toEqual(reply('Gamma!'));
      expect(give(alike, 'BETA')).toEqual(problem('option 1, "Beta" (type #1) or option 2, "beta" (type #2)'));
    });

    test('options that send the same are one', () => {
      expect(
        give(
          ask({
            options: [
              { label: 'Yes', value: 1 },
              { label: 'yes', value: 1 },
            ],
          }),
          'YES',
        ),
      ).toEqual(reply(1));
    });
  });

  test('the sent answer is described in words', () => {
    expect(give(choice, '1')).toMatchObject({ sent: '"pg" (option 1, Postgres)' });
    expect(give(choice, 'MySQL')).toMatchObject({ sent: '"MySQL"' });
    expect(give({ ...choice, default: 'pg' }, '')).toMatchObject({ sent: '"pg" (the default)' });
  });

  test('a typed text never becomes an option that has another text and another number', () => {
    const names = ['1', '2', '3', '5', 'a', 'A', 'b', 'B ', '#1', '"1"', 'yes'];
    const lines = ['1', '2', '3', '4', '5', 'a', 'A', 'b', '#1', '#2', '"1"', 'YES', 'c'];
    const labels = fc.array(fc.constantFrom(...names), { minLength: 1, maxLength: 6 });
    fc.assert(
      fc.property(labels, fc.constantFrom(...lines), (labelTexts, line) => {
        const options = labelTexts.map((label, index) => ({ label, value: { index } }));
        const answer = give(ask({ kind: 'choose_one', options }), line);
        if (answer.kind !== 'reply') return;
        const { index } = answer.response as { index?: number };
        if (index === undefined) {
          expect(answer.response).toBe(line);
          return;
        }
        const readings = (place: number): string[] => {
          const label = labelTexts[place]?.trim() ?? '';
          return [label, String(place + 1), `#${place + 1}`, `"${label}"`, label.toLowerCase()];
        };
        const isMeant =
          readings(index).includes(line) || labelTexts[index]?.trim().toLowerCase() === line.toLowerCase();
        expect(isMeant).toBe(true);
        const rivals = labelTexts.filter((_, other) => other !== index && readings(other).slice(0, 2).includes(line));
        if (/^\d+$/.test(line)) expect(rivals).toEqual([]);
      }),
      { numRuns: runs(500) },
    );
  });

  test('Enter takes the default, or is a problem', () => {
    expect(give(choice, '')).toEqual(problem('an answer is needed'));
    expect(give({ ...choice, default: 'pg' }, '')).toEqual(reply('pg'));
  });

  test('the prompt lists the possible input', () => {
    expect(createDialogue(choice).prompt()).toBe('1-3 or text > ');
    expect(createDialogue({ ...choice, default: 'pg' }).prompt()).toBe('1-3 or text Enter: pg > ');
  });
});

describe('a confirmation', () => {
  test.each([
    ['y', true],
    ['YES', true],
    ['n', false],
    ['No', false],
    ['yes, but slowly', 'yes, but slowly'],
  ])('%s is %j', (line, response) => {
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

  test('continues after a backslash at the line end', () => {
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
    const result = dialogue.give('y');
    expect(JSON.stringify(result)).toContain('"response":{"db":"pg","__proto__":80,"sure":true}');
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
    ['s', { decision: 'approve_for_session' }],
    ['s: for now', { decision: 'approve_for_session', note: 'for now' }],
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

  test('a pasted text whose first line is a letter decides nothing', () => {
    expect(give(ask({ kind: 'approval' }), 'y\nrm -rf /')).toEqual(problem('y approves'));
  });

  test('that was not shown whole is approved only by a word that says so', () => {
    const hasMore = { more: true };
    const dialogue = createDialogue(ask({ kind: 'approval' }), { hasMore: () => hasMore.more });
    expect(dialogue.prompt()).toContain('y!: approve unread');
    expect(dialogue.give('')).toEqual({ kind: 'page' });
    expect(dialogue.give('y')).toEqual(problem('you have not seen all of it'));
    expect(dialogue.give('s')).toEqual(problem('you have not seen all of it'));
    expect(dialogue.give('y!')).toEqual({
      kind: 'reply',
      response: { decision: 'approve' },
      sent: 'approve',
      review: 'unread',
    });
    expect(dialogue.give('n')).toMatchObject({ response: { decision: 'decline' }, review: 'unread' });
    hasMore.more = false;
    expect(dialogue.give('y')).toMatchObject({ response: { decision: 'approve' }, review: 'seen' });
    expect(dialogue.give('')).toEqual(problem('y approves'));
  });

  test('that was declined is confirmed as declined', () => {
    expect(confirmSent({ response: { decision: 'decline' }, sent: 'decline' })).toBe(
      'You declined this. The agent has been told.',
    );
    expect(confirmSent({ response: { decision: 'cancel' }, sent: 'cancel' })).toMatch(/^You declined this and stopped/);
    expect(confirmSent({ response: { decision: 'approve' }, sent: 'approve' })).toBe('Sent: approve');
  });
});

describe('commands', () => {
  test('/finish ends only a conversation in which nothing was asked', () => {
    expect(give(ask({ channel: 'conversation' }), '/finish ')).toEqual({ kind: 'finish' });
    // A slip is reported; with a blank before it, it is an answer.
    for (const slip of ['/cancle', '/help', '/', '?'])
      expect(give(ask({ channel: 'conversation' }), slip)).toEqual(problem('/finish ends the conversation'));
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
    const form = ask({
      fields: [
        { id: 'a', kind: 'open_text', prompt: '\u001b]0;x\u0007Port\u001b[2J?', options: [], default: '\u001b[31m' },
      ],
    });
    expect(createDialogue(form).prompt()).toBe('1/1 ⟨U+001B⟩]0;x⟨U+0007⟩Port⟨U+001B⟩[2J? Enter: ⟨U+001B⟩[31m > ');
  });
});

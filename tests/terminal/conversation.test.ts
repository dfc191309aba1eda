import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { FcmpEvent } from '../../src/fcmp/event.js';
import { splitDoneMarker } from '../../src/fcmp/engine-details.js';
import type { JsonObject } from '../../src/kernel/json.js';
import { ConversationView } from '../../src/terminal/conversation.js';
import { TinyTerminal } from '../support/tiny-terminal.js';
import {
  CONTROL,
  cut,
  event,
  expectFits,
  hostile,
  loadRecorded,
  plain,
  RECORDED,
  RUNS,
  show,
  state,
} from './fixtures.js';

const screenOf = (...lines: string[]) => lines.map((line) => `${line}\n`).join('');
const delta = (text: string, id: string | null = 'm') => event('assistant.message.delta', { message_id: id, text });
const final = (text: string, id: string | null = 'm', truncated = false) =>
  event('assistant.message.final', { message_id: id, text, truncated });
const answered = (data: object) =>
  show(
    [
      event('interaction.reply.accepted', {
        interaction_id: 'i',
        resolution_mode: 'user_reply',
        accepted_at: '',
        ...data,
      }),
    ],
    plain(80),
  );

const approval = (action: JsonObject, prompt = 'The agent wants to change files:') =>
  event('user.input.required', {
    interaction_id: 'i',
    kind: 'approval',
    prompt,
    options: [],
    action,
    channel: 'native',
  });

test('an approval of a change shows every line of it, with its size and a warning', () => {
  const diff = [
    '@@ -1 +1 @@',
    '-two',
    ' three\u001b[31m',
    ...Array.from({ length: 300 }, (_, index) => `+${index}`),
  ].join('\n');
  const changes = [
    { path: '/w/a\u001b[2J.txt', kind: 'update', diff },
    { path: 'b', kind: 'add', diff: '+not a diff\n\n' },
  ];
  const shown = show([approval({ kind: 'file_change', changes })], plain(60)).split('\n');
  expect(shown.slice(0, 9)).toEqual([
    '! This text contains 2 invisible or control characters, ',
    '  shown as ⟨U+…⟩.',
    '? The agent wants to change files:',
    '  2 files, +302 −1',
    '  changed /w/a⟨U+001B⟩[2J.txt (+300 −1)',
    '    @@ -1 +1 @@',
    '  - two',
    '    three⟨U+001B⟩[31m',
    '  + 0',
  ]);
  expect(shown.filter((line) => /^ {2}\+ \d/.test(line))).toHaveLength(300);
  expect(shown.slice(-4)).toEqual(['  new b (+2 −0)', '  + +not a diff', '  + ', '']);
});

test('a command that hides a second one in an escape sequence is shown with both', () => {
  const command = 'ls -la \u001b]; touch /x #\u0007';
  const shown = show(
    [approval({ kind: 'command', command }, `The agent wants to run a command:\n  | ${command}`)],
    plain(60),
  );
  expect(shown).toContain('  | ls -la ⟨U+001B⟩]; touch /x #⟨U+0007⟩');
  expect(shown).toMatch(/^! This text contains 2 invisible/);
});

describe('recorded conversations', () => {
  test('Codex asks two questions in one turn', () => {
    expect(show(loadRecorded('codex/ask-ask2'), plain(80))).toBe(
      screenOf(
        'codex · interactive',
        '',
        '> golden',
        '',
        '✓ parley.ask_human  Which database?⟨U+000A⟩Pick one.',
        '✓ parley.ask_human  Second?',
        '',
        'Both asked.',
        '',
        '· engine details: 2 lines of stderr',
        'tokens 200 in (20 cached), 40 out (10 thinking) so far',
        '',
        '? The agent has 2 questions:',
        '  1. Which database?',
        '     Pick one.',
        '     1) Postgres',
        '     2) SQLite',
        '     3) Ünïcode 漢字 🚀',
        '  2. Second?',
        '     1) x',
        '     2) y',
      ),
    );
  });

  test('the same on a narrow terminal', () => {
    expect(show(loadRecorded('codex/ask-askmore'), plain(20))).toBe(
      screenOf(
        'codex · interactive',
        '',
        '> golden',
        '',
        '✓ parley.…  Which d…',
        '',
        'Going on anyway.',
        '',
        '✓ shell  echo MORE…',
        '',
        'Finished with more.',
        '',
        '· engine details: 2…',
        'tokens 300 in (30 c…',
        '',
        '? Which database?',
        '  Pick one.',
        '  1) Postgres',
        '  2) SQLite',
        '  3) Ünïcode 漢字 🚀',
      ),
    );
  });

  test('Gemini streams, calls a tool and ends its turn without asking', () => {
    expect(show(loadRecorded('gemini/tool-yolo-stream'), plain(60))).toBe(
      screenOf(
        'gemini · interactive',
        '',
        '> golden',
        '',
        'Calling the tool.',
        '',
        '✓ run_shell_command  echo TOOL_RAN_23; pwd',
        '',
        'Tool said: {"output":"<untrusted_context>\\nOutput:',
        'TOOL_RAN_23\\n/srv/demo/w1\\nProcess Group PGID:',
        '25934\\n</untrusted_context>"}',
        '',
        '· engine details: 4 lines of stderr',
        'tokens 20 in, 10 out · 647 ms',
        '',
        '? The agent ended its turn. Say more, or finish.',
      ),
    );
  });

  test('OpenCode changes a file; its steps are one line of usage', () => {
    expect(show(loadRecorded('opencode/edit-json'), plain(80))).toBe(
      screenOf(
        'opencode · interactive',
        '',
        '> golden',
        '',
        'Calling the tool.',
        '',
        '✓ write  made-by-tool.txt · 222 ms',
        'added /srv/demo/w1/made-by-tool.txt',
        '',
        'Tool said: Wrote file successfully.',
        '',
        'tokens 20 in, 10 out',
        '',
        '? The agent ended its turn. Say more, or finish.',
      ),
    );
  });

  test('a run fails with its code and message', () => {
    expect(show(loadRecorded('codex/exec-badkey'), plain(60))).toContain(
      screenOf(
        '',
        '✗ failed: ENGINE_AUTH_REQUIRED',
        '  unexpected status 401 Unauthorized: Incorrect API key',
        '  provided: bad., url: http://127.0.0.1:18080/v1/responses',
      ),
    );
  });

  describe.each(RECORDED)('%s', (folder) => {
    const events = loadRecorded(folder);

    test('fits every width, live and not, and without colour has no escape', () => {
      for (const width of [20, 40, 80, 200]) {
        const text = show(events, plain(width));
        expectFits(text, width);
        expect(text).not.toMatch(CONTROL);
        expect(text).not.toMatch(/\n\n\n/);
        expect(show(events, plain(width), false)).toBe(text);
      }
    });

    test('with colour is the same text', () => {
      const coloured = show(events, { colour: true, width: 80 });
      expectFits(coloured, 80);
      expect(coloured.replace(/\u001b\[\d+m/g, '')).toBe(show(events, plain(80)));
    });
  });
});

describe('a conversation of two attempts', () => {
  const events: FcmpEvent[] = [
    event('conversation.started', { engine: 'codex', execution_mode: 'interactive', fold_version: 1 }),
    event('user.message', { text: '请把项目迁移到新的数据库，并且保证所有的测试都能通过。' }),
    state('queued', 'running'),
    event('assistant.reasoning', { text: '**Looking** at\nthe schema' }),
    event('assistant.plan', {
      items: [
        { text: 'read', done: true },
        { text: 'migrate', done: false },
      ],
    }),
    event('assistant.plan', {
      items: [
        { text: 'read', done: true },
        { text: 'migrate', done: false },
      ],
    }),
    event(
      'assistant.tool.started',
      { call_id: '1', name: 'shell', kind: 'command', input: { command: "/bin/bash -lc 'npm test -- --run'" } },
      { ms: 1000 },
    ),
    event(
      'assistant.tool.completed',
      { call_id: '1', name: 'shell', kind: 'command', status: 'failed', exit_code: 1, output: 'no' },
      { ms: 13_400 },
    ),
    event('assistant.tool.completed', { call_id: '2', name: 'delete_all', kind: 'other', status: 'declined' }),
    event('artifact.file.changed', { path: 'src/db.ts', kind: 'update' }),
    event('usage', {
      scope: 'turn',
      input_tokens: 12_345,
      output_tokens: 678,
      cost_usd: 0.0123,
      duration_ms: 65_000,
      model: 'gpt-x',
    }),
    event('user.input.required', {
      interaction_id: 'int_1',
      kind: 'choose_one',
      prompt: 'Which database?',
      default: 'pg',
      channel: 'tool',
      options: [
        { label: 'Postgres', value: 'pg', description: 'needs a server' },
        { label: 'SQLite', value: 'sqlite' },
      ],
    }),
    state('running', 'waiting_user'),
    event('interaction.reply.accepted', {
      interaction_id: 'int_1',
      resolution_mode: 'user_reply',
      accepted_at: '',
      response: 'sqlite',
      actor: { kind: 'user', name: 'ada' },
    }),
    state('waiting_user', 'queued'),
    state('queued', 'running', { attempt: 2 }),
    ...['Mig', 'rated to ', 'SQLite. ', '全部', '测试通过。'].map((text) => delta(text)),
    final('Migrated to SQLite. 全部测试通过。'),
    event(
      'user.input.required',
      { interaction_id: 'int_2', kind: 'approval', prompt: 'push to main', options: [], channel: 'native' },
      { attempt: 2 },
    ),
    event(
      'interaction.auto_decide.timeout',
      {
        interaction_id: 'int_2',
        resolution_mode: 'auto_decide_timeout',
        policy: 'decline',
        response: { decision: 'decline' },
      },
      { attempt: 2 },
    ),
    state('queued', 'running', { attempt: 3 }),
    event('conversation.completed', { result: { ok: true, tables: 12 } }, { attempt: 3 }),
    state('running', 'succeeded', { attempt: 3 }),
  ];

  test('reads like a conversation', () => {
    expect(show(events, plain(40))).toBe(
      screenOf(
        'codex · interactive',
        '',
        '> 请把项目迁移到新的数据库，并且保证所有',
        '  的测试都能通过。',
        '',
        '~ **Looking** at the schema',
        '[x] read',
        '[ ] migrate',
        '✗ shell  npm test -- --… · exit 1 · 12 s',
        '⊘ delete_all · declined',
        'changed src/db.ts',
        'tokens 12.3k in, 678 out · $0.0123 · 1…',
        '',
        '? Which database?',
        '  1) Postgres',
        '     needs a server',
        '  2) SQLite',
        '  default: pg',
        '',
        '✓ answered by ada: sqlite',
        '',
        '── turn 2 ──',
        '',
        'Migrated to SQLite. 全部测试通过。',
        '',
        '? The agent asks for permission: push ',
        '  to main',
        '',
        '! nobody answered in time, decided by',
        '  the policy decline: decline',
        '',
        '── turn 3 ──',
        '',
        '✓ done',
        '  {"ok":true,"tables":12}',
      ),
    );
  });

  test('names who canceled and why it failed', () => {
    expect(show([event('conversation.canceled', { actor: { kind: 'token', name: 'ci' } })], plain(80))).toBe(
      '■ canceled by ci\n',
    );
    const failed = event('conversation.failed', {
      error: { code: 'ENGINE_EXITED', message: 'It ended.\nSadly.', details: { exit_code: 3, stderr: 'a\nb' } },
    });
    expect(show([failed], plain(80))).toBe(
      screenOf('✗ failed: ENGINE_EXITED', '  It ended.', '  Sadly.', '  exit_code: 3', '  stderr: a b'),
    );
  });

  test('shows answers of several fields, decisions with a note, and a finish', () => {
    expect(answered({ response: { q1: 'pg', q2: 7 } })).toBe('✓ answered:\n  q1: pg\n  q2: 7\n');
    expect(answered({ response: { decision: 'decline', note: 'not today' } })).toBe('⊘ declined: not today\n');
    expect(answered({ response: { decision: 'cancel' } })).toBe('⊘ declined and stopped\n');
    expect(answered({ response: { decision: 'approve' }, review: 'seen' })).toBe('✓ approved\n');
    expect(answered({ response: { decision: 'approve' }, review: 'unread' })).toBe(
      '✓ approved, not all of it was shown\n',
    );
    expect(answered({ response: null, finish: true, actor: { kind: 'user', name: 'ada' } })).toBe(
      '✓ finished by ada\n',
    );
  });

  test('marks an overdue question if requested', () => {
    const asked = event('user.input.required', {
      interaction_id: 'i',
      kind: 'open_text',
      prompt: 'Well?',
      options: [],
    });
    expect(show([{ ...asked, data: { ...asked.data, overdue: true } }], plain(80))).toBe(
      '? Well?\n  overdue: it has waited longer than its time limit\n',
    );
  });

  test('clips a long result', () => {
    const result = Array.from({ length: 100 }, (_, index) => index);
    const lines = show([event('conversation.completed', { result })], plain(80)).split('\n');
    expect(lines.slice(-3)).toEqual(['    22,', '… 78 more lines', '']);
  });

  test('skips unknown events', () => {
    expect(show([{ ...delta('x'), type: 'assistant.hologram', data: { size: 3 } }], plain(80))).toBe('');
  });
});

describe('messages', () => {
  test('appear while they come, on the same line', () => {
    const view = new ConversationView(plain(20), { live: true });
    const out = ['Hello ', 'world, ', 'how are ', 'your friends?'].map((text) => view.push(delta(text)));
    expect(out).toEqual(['Hello', ' world,', ' how are', '\nyour']);
    expect(view.push(final('Hello world, how are your friends?'))).toBe(' friends?\n');
  });

  test('show their last word when the engine thinks for a while', () => {
    const view = new ConversationView(plain(80), { live: true });
    expect(view.push(delta('I will run the tests.'))).toBe('I will run the');
    expect(view.pause()).toBe(' tests.');
    expect(view.pause()).toBe('');
    expect(view.push(final('I will run the tests.'))).toBe('\n');
    expect(view.pause()).toBe('');
  });

  test('are shown once: whole, the missing rest, or again if the pieces differed', () => {
    expect(show([final('Hello.')], plain(80))).toBe('Hello.\n');
    expect(show([delta('Hel'), final('Hello.')], plain(80))).toBe('Hello.\n');
    expect(show([delta('Hello. '), final('Hello.')], plain(80))).toBe('Hello.\n');
    expect(show([delta('Hullo.'), final('Hello.')], plain(80))).toBe('Hullo.\n\nHello.\n');
    expect(show([delta('Hullo.'), final('Hello.')], plain(80), false)).toBe('Hello.\n');
    expect(show([delta('Hello, world'), final('Hello', 'm', true)], plain(80))).toBe(
      'Hello, world\n\n(cut off: too long)\n',
    );
  });

  test('that were never completed are still shown', () => {
    for (const live of [true, false]) {
      expect(show([delta('I will n'), event('conversation.canceled', {})], plain(80), live)).toBe(
        'I will n\n\n■ canceled\n',
      );
      expect(show([delta('I will n')], plain(80), live)).toBe('I will n\n');
    }
  });

  test('of two kinds do not run into each other', () => {
    expect(show([delta('one', 'a'), delta('two', 'b'), final('one', 'a'), final('two', 'b')], plain(80))).toBe(
      'one\n\ntwo\n',
    );
  });

  test('are not split by other output of the engine', () => {
    const noise = event('raw.stderr', { text: 'warning' });
    const events = [delta('Hel'), noise, delta('lo.'), noise, final('Hello.'), noise];
    expect(show(events, plain(80))).toBe('Hello.\n\n· engine details: 3 lines of stderr\n');
    const view = new ConversationView(plain(80), { live: true, details: true });
    expect(events.map((each) => view.push(each)).join('') + view.end()).toBe(
      'Hello.\n\nstderr | warning\nstderr | warning\nstderr | warning\n',
    );
  });

  test('end with a done marker among the engine details, and a failure is shown once', () => {
    const events = [
      final('All tests pass.\n{"done":true,"result":{"ok":1}}'),
      event('raw.stderr', { text: 'boom' }),
      event('diagnostic.warning', { code: 'ENGINE_ERROR', message: 'It broke.', terminal: true }),
      event('conversation.failed', { error: { code: 'ENGINE_FAILED', message: 'It broke.' } }),
    ];
    expect(show(events, plain(80))).toBe(
      screenOf(
        'All tests pass.',
        '',
        '· engine details: 1 line of stderr, 1 warning, the done marker',
        '',
        '✗ failed: ENGINE_FAILED',
        '  It broke.',
      ),
    );
  });

  test.each([
    ['Done.\n\n```json\n{"done":true,"result":1}\n```', 'Done.'],
    ['Done.\n{\n  "done": true,\n  "result": {"a": 1}\n}', 'Done.'],
    ['Set {"done":true} in the file', 'Set {"done":true} in the file'],
    ['Done.\n{"done":false}', 'Done.\n{"done":false}'],
    ['no JSON }', 'no JSON }'],
  ])('%j is shown as %j', (text, said) => {
    expect(splitDoneMarker(text).text).toBe(said);
  });

  test('are interrupted by a tool call and continue after it', () => {
    const call = event('assistant.tool.completed', {
      call_id: '1',
      name: 'ls',
      kind: 'command',
      status: 'completed',
      duration_ms: 5,
    });
    expect(show([delta('Let me '), call, delta('look.'), final('Let me look.')], plain(80))).toBe(
      'Let me\n\n✓ ls · 5 ms\n\nlook.\n',
    );
  });

  test('give the same screen however they are cut, live or not', () => {
    fc.assert(
      fc.property(hostile(), fc.array(fc.nat()), fc.constantFrom(20, 40, 80, 200), (text, places, width) => {
        const whole = [final(text), state('running', 'waiting_user')];
        const expected = show(whole, plain(width));
        const pieces = [...cut(text, places).map((piece) => delta(piece)), ...whole];
        expect(show(pieces, plain(width))).toBe(expected);
        expect(show(pieces, plain(width), false)).toBe(expected);
        // And a terminal of that width never wraps by itself.
        const narrow = new TinyTerminal(width);
        const endless = new TinyTerminal(Infinity);
        for (const terminal of [narrow, endless]) terminal.write(expected);
        expect(narrow.text()).toBe(endless.text());
      }),
      RUNS,
    );
  });
});

test('no engine can control the terminal by any text of any event, or break a line', () => {
  const json = fc.oneof(hostile(), fc.dictionary(hostile(), hostile(), { maxKeys: 2 }));
  fc.assert(
    fc.property(hostile(), hostile(), json, fc.constantFrom(20, 40, 80, 200), (text, name, value, width) => {
      const option = { label: text, value, description: name };
      const field = { id: name, kind: 'choose_one' as const, prompt: text, options: [option], default: value };
      const shown = show(
        [
          event('conversation.started', { engine: name, execution_mode: 'auto', fold_version: 1 }),
          event('user.message', { text }),
          event('assistant.reasoning', { text }),
          event('assistant.plan', { items: [{ text, done: false }] }),
          event('assistant.tool.started', { call_id: '1', name, kind: 'other', input: value }),
          event('assistant.tool.completed', {
            call_id: '1',
            name,
            kind: 'other',
            status: 'failed',
            error: text,
            exit_code: 1,
            duration_ms: 5,
          }),
          event('assistant.tool.started', { call_id: '2', name, kind: 'other', input: { command: text } }),
          event('assistant.tool.completed', { call_id: '2', name, kind: 'other', status: 'completed' }),
          event('artifact.file.changed', { path: text, kind: 'delete' }),
          event('diagnostic.warning', { code: name, message: text }),
          event('raw.stdout', { text }),
          event('usage', { scope: 'turn', input_tokens: 1, model: text }),
          event('user.input.required', {
            interaction_id: 'i',
            kind: 'choose_one',
            prompt: text,
            options: [option],
            fields: [field],
            default: value,
            channel: 'tool',
          }),
          event('interaction.reply.accepted', {
            interaction_id: 'i',
            resolution_mode: 'user_reply',
            accepted_at: '',
            response: value,
            actor: { kind: 'user', name },
          }),
          event('conversation.completed', { result: value }),
          event('conversation.failed', { error: { code: name, message: text, details: { [name]: value } } }),
          event('conversation.canceled', { actor: { kind: 'user', name } }),
        ],
        plain(width),
      );
      expectFits(shown, width);
      expect(shown).not.toMatch(CONTROL);
    }),
    RUNS,
  );
});

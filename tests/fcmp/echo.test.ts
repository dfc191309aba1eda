import { PassThrough, Readable } from 'node:stream';
import { text as readText } from 'node:stream/consumers';
import { describe, expect, test } from 'vitest';
import { createIo } from '../support/io.js';
import { runCli } from '../../src/cli/program.js';
import type { FcmpEvent } from '../../src/fcmp/event.js';
import { ConversationFold, type FoldInput } from '../../src/fcmp/fold.js';
import type { RaspEvent } from '../../src/rasp/event.js';
import { joinLines } from '../support/parse.js';

const TS = '2026-11-15T00:00:00.000Z';
const ENDED = {
  exit: { code: 0, signal: null },
  completion: { result: 'completed', reason_code: 'ENGINE_SUCCESS' },
  streams: { stdout: { bytes: 0, sha256: '' }, stderr: { bytes: 0, sha256: '' } },
  parser: { profile: 'codex_ndjson', units: 0, parsed: 0, fallbacks: 0, hit_rate: null, warnings: {} },
};

type Said = Pick<FoldInput, 'type' | 'data'> & Partial<FoldInput>;

const final = (text: string): Said => ({ type: 'agent.message.final', data: { text }, itemId: 'message_1' });
const delta = (text: string): Said => ({ type: 'agent.message.delta', data: { text }, itemId: 'message_1' });
const out = (text: string): Said => ({ type: 'raw.stdout', data: { text } });
const err = (text: string): Said => ({ type: 'raw.stderr', data: { text } });
const ended: Said = { type: 'lifecycle.turn.ended', data: ENDED };
const progress: Said = { type: 'lifecycle.engine.progress', data: { phase: 'x' } };

// Folds the events in order; returns the output of each.
function foldEach(events: readonly Said[]): FcmpEvent[][] {
  const fold = new ConversationFold('run_test');
  let at = 0;
  return events.map((event, index) => {
    const range = {
      stream: event.type === 'raw.stderr' ? ('stderr' as const) : ('stdout' as const),
      from: at,
      to: (at += 10),
    };
    return fold
      .push({ seq: index + 1, ts: TS, attempt: 1, itemId: null, range, ...event })
      .map((line) => JSON.parse(line) as FcmpEvent);
  });
}

// A short form of the conversation after the first events.
function shown(...events: readonly Said[]): unknown[] {
  return foldEach(events)
    .flat()
    .map(({ type, data }) => {
      if (type === 'diagnostic.warning')
        return data['code'] === 'RAW_DUPLICATE_SUPPRESSED'
          ? `suppressed ${data['suppressed_count'] as number} of ${data['stream'] as string}`
          : data['code'];
      return type.startsWith('raw.') ? `${type} ${data['text'] as string}` : type;
    });
}

const MESSAGE = final('one\ntwo\nthree\nfour');

describe('an echo', () => {
  test('three raw lines in a row that repeat the assistant become one warning with their number', () => {
    const events = foldEach([MESSAGE, out('one'), out('two'), out('three'), ended]);
    expect(events.map((each) => each.length)).toEqual([1, 0, 0, 0, 1]);
    expect(events[4]?.[0]).toMatchObject({
      type: 'diagnostic.warning',
      rasp_seq: 4,
      data: { code: 'RAW_DUPLICATE_SUPPRESSED', suppressed_count: 3, stream: 'stdout' },
    });
  });

  test('lines that are held survive an event that is refused', () => {
    const fold = new ConversationFold('run_test');
    const push = (event: Said, seq: number) =>
      fold
        .push({ seq, ts: TS, attempt: 1, itemId: null, range: null, ...event })
        .map((line) => (JSON.parse(line) as FcmpEvent).type);
    push(MESSAGE, 1);
    push(out('one'), 2);
    expect(() =>
      push(
        { type: 'lifecycle.state.changed', data: { from: 'running', to: 'succeeded', trigger: 'turn.succeeded' } },
        3,
      ),
    ).toThrow('updated_at');
    expect(push(ended, 3)).toEqual(['raw.stdout']);
  });

  test('more lines are counted all, in any order and more than once', () => {
    expect(shown(MESSAGE, out('four'), out('one'), out('one'), out('two'), out('four'), ended)).toEqual([
      'assistant.message.final',
      'suppressed 5 of stdout',
    ]);
  });

  test('lines of stderr are an echo as well', () => {
    expect(shown(MESSAGE, err('one'), err('two'), err('three'), ended)).toEqual([
      'assistant.message.final',
      'suppressed 3 of stderr',
    ]);
  });

  test('two lines may be chance and are shown', () => {
    expect(shown(MESSAGE, out('one'), out('two'), ended)).toEqual([
      'assistant.message.final',
      'raw.stdout one',
      'raw.stdout two',
    ]);
  });

  test('colour codes and blanks around a line do not hide an echo', () => {
    expect(
      shown(MESSAGE, err('\u001b[1mone\u001b[0m'), err('  two\t'), err('\u001b[31;1m three\u001b[39m '), ended),
    ).toEqual(['assistant.message.final', 'suppressed 3 of stderr']);
  });

  test('text that came in pieces counts, also the line that is not finished yet', () => {
    expect(
      shown(delta('one\ntw'), delta('o\nthr'), delta('ee'), out('one'), out('two'), out('three'), ended).slice(3),
    ).toEqual(['suppressed 3 of stdout']);
  });

  test('text that came in pieces and then whole counts', () => {
    expect(
      shown(
        delta('one\ntwo\n'),
        delta('three'),
        final('one\ntwo\nthree'),
        out('one'),
        out('two'),
        out('three'),
        ended,
      ).slice(3),
    ).toEqual(['suppressed 3 of stdout']);
  });

  test('messages of one line that came in pieces and then whole count', () => {
    const said = ['first', 'second', 'third'].flatMap((text) => [
      delta(text.slice(0, 2)),
      delta(text.slice(2)),
      final(text),
    ]);
    expect(shown(...said, out('first'), out('second'), out('third'), ended).slice(9)).toEqual([
      'suppressed 3 of stdout',
    ]);
  });

  test('blank lines neither break an echo nor count', () => {
    expect(shown(MESSAGE, out('one'), out(''), out('two'), out('  '), out('three'), ended)).toEqual([
      'assistant.message.final',
      'suppressed 3 of stdout',
    ]);
  });

  test('the warnings that belong to the lines themselves do not break an echo, and go with it', () => {
    const [one, two, three] = ['one', 'two', 'three'].map((text, index): [Said, Said] => {
      const range = { stream: 'stdout' as const, from: index * 6, to: index * 6 + 6 };
      return [
        { ...out(text), range },
        {
          type: 'diagnostic.parser.warning',
          data: { code: 'LINE_UNDECODABLE', message: 'the line is not a JSON object' },
          range,
        },
      ];
    }) as [[Said, Said], [Said, Said], [Said, Said]];
    expect(shown(MESSAGE, ...one, ...two, ...three, ended)).toEqual([
      'assistant.message.final',
      'suppressed 3 of stdout',
    ]);
    expect(shown(MESSAGE, ...one, ...two, ended)).toEqual([
      'assistant.message.final',
      'raw.stdout one',
      'LINE_UNDECODABLE',
      'raw.stdout two',
      'LINE_UNDECODABLE',
    ]);
  });

  test('a warning about other bytes ends the run of lines', () => {
    const warning: Said = { type: 'diagnostic.parser.warning', data: { code: 'FIELD_DRIFT', message: 'x' } };
    expect(shown(MESSAGE, out('one'), out('two'), warning, out('three'), ended)).toEqual([
      'assistant.message.final',
      'raw.stdout one',
      'raw.stdout two',
      'FIELD_DRIFT',
      'raw.stdout three',
    ]);
  });
});

describe('lines that are not an echo', () => {
  test('a different line releases the held lines, in order', () => {
    expect(shown(MESSAGE, out('one'), out('two'), out('other'), out('three'), ended)).toEqual([
      'assistant.message.final',
      'raw.stdout one',
      'raw.stdout two',
      'raw.stdout other',
      'raw.stdout three',
    ]);
  });

  test('a line of another stream releases the held lines', () => {
    expect(shown(MESSAGE, out('one'), out('two'), err('three'), ended)).toEqual([
      'assistant.message.final',
      'raw.stdout one',
      'raw.stdout two',
      'raw.stderr three',
    ]);
    expect(shown(MESSAGE, out('one'), err('two'), out('three'), err('four'), ended)).toEqual([
      'assistant.message.final',
      'raw.stdout one',
      'raw.stderr two',
      'raw.stdout three',
      'raw.stderr four',
    ]);
  });

  test('any other event releases the held lines before its own', () => {
    expect(shown(MESSAGE, out('one'), out('two'), progress, out('three'), ended)).toEqual([
      'assistant.message.final',
      'raw.stdout one',
      'raw.stdout two',
      'raw.stdout three',
    ]);
    expect(shown(MESSAGE, out('one'), out('two'), final('more'), ended)).toEqual([
      'assistant.message.final',
      'raw.stdout one',
      'raw.stdout two',
      'assistant.message.final',
    ]);
  });

  test('lines held back come out at the end of the turn at the latest', () => {
    const events = foldEach([MESSAGE, out('one'), out('two'), ended]);
    expect(events.map((each) => each.map(({ rasp_seq }) => rasp_seq))).toEqual([[1], [], [], [2, 3]]);
  });

  test('a part of a line is not the line', () => {
    expect(shown(final('one and\ntwo and\nthree and'), out('one'), out('two'), out('three'), ended).slice(1)).toEqual([
      'raw.stdout one',
      'raw.stdout two',
      'raw.stdout three',
    ]);
  });

  test('later text of the assistant is not compared', () => {
    expect(shown(out('one'), out('two'), out('three'), MESSAGE, ended)).toEqual([
      'raw.stdout one',
      'raw.stdout two',
      'raw.stdout three',
      'assistant.message.final',
    ]);
  });

  test('text of another attempt is not compared', () => {
    const next = { attempt: 2 };
    expect(
      shown(
        MESSAGE,
        ended,
        { ...out('one'), ...next },
        { ...out('two'), ...next },
        { ...out('three'), ...next },
        { ...ended, ...next },
      ).slice(1),
    ).toEqual(['raw.stdout one', 'raw.stdout two', 'raw.stdout three']);
  });

  test('reasoning and tool output are not messages of the assistant', () => {
    const reasoning: Said = { type: 'agent.reasoning', data: { text: 'one\ntwo\nthree' } };
    const tool: Said = {
      type: 'tool.call.completed',
      data: { name: 'shell', kind: 'command', status: 'completed', output: 'one\ntwo\nthree' },
    };
    expect(shown(reasoning, tool, out('one'), out('two'), out('three'), ended).slice(2)).toEqual([
      'raw.stdout one',
      'raw.stdout two',
      'raw.stdout three',
    ]);
  });

  test('the pieces of a line that is too long are shown', () => {
    const pieces = ['one', 'two', 'three'].map((text, part): Said => ({ type: 'raw.stdout', data: { text, part } }));
    expect(shown(MESSAGE, ...pieces, ended).slice(1)).toEqual(['raw.stdout one', 'raw.stdout two', 'raw.stdout three']);
  });
});

test('a suppressed echo is whole in RASP, and only FCMP leaves it out', async () => {
  const stdout = joinLines(
    '{"type":"thread.started","thread_id":"01a1e065-6fe8-7fd2-a5f7-dea3d46cd55c"}',
    '{"type":"item.completed","item":{"id":"item_1","type":"agent_message","text":"one\\ntwo\\nthree"}}',
    'one',
    'two',
    'three',
    '{"type":"turn.completed","usage":{}}',
  );
  const run = async (...flags: string[]) => {
    const output = new PassThrough();
    const done = runCli(
      ['parse', '--engine', 'codex', '--reproducible', ...flags],
      createIo({ stdin: Readable.from([Buffer.from(stdout)]), stdout: output, stderr: new PassThrough() }),
    );
    void done.then(() => output.end());
    return (await readText(output))
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as unknown);
  };
  const rasp = (await run()) as RaspEvent[];
  const raw = rasp.filter(({ event }) => event.type === 'raw.stdout');
  expect(raw.map(({ data }) => data['text'])).toEqual(['one', 'two', 'three']);
  expect(raw.map(({ raw_ref: ref }) => stdout.slice(ref?.byte_from, ref?.byte_to))).toEqual([
    'one\n',
    'two\n',
    'three\n',
  ]);
  expect(rasp.filter(({ data }) => data['code'] === 'LINE_UNDECODABLE')).toHaveLength(3);
  const fcmp = (await run('--fcmp')) as FcmpEvent[];
  expect(fcmp.filter(({ type }) => type.startsWith('raw.'))).toEqual([]);
  expect(fcmp.filter(({ data }) => data['code'] === 'RAW_DUPLICATE_SUPPRESSED')).toMatchObject([
    { data: { suppressed_count: 3, stream: 'stdout' } },
  ]);
  expect(fcmp.filter(({ data }) => data['code'] === 'LINE_UNDECODABLE')).toEqual([]);
});

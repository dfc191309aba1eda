// Lines that were parsed when they were received: the parser gives the same drafts for them as for their bytes.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { MAX_LINE_BYTES } from '../../src/engines/framing.js';
import { createTurnParser, findEngine } from '../../src/engines/registry.js';
import { newMemory } from '../../src/engines/turn-parser.js';
import { LineReader, type ReceivedLine } from '../../src/jsonrpc/received-line.js';
import { runs } from '../support/runs.js';

const ENGINE = findEngine('codex-app-server');
const GOLDEN = new URL('../golden/codex-app-server', import.meta.url).pathname;
const RECORDINGS = readdirSync(GOLDEN).map((name) => readFileSync(join(GOLDEN, name, 'stdout.bin')));

function linesOf(bytes: Buffer, from = 0): ReceivedLine[] {
  const lines: ReceivedLine[] = [];
  const reader = new LineReader((line) => void lines.push(line), from);
  reader.push(bytes);
  reader.end();
  return lines;
}

// Everything that the parser shows, with the messages of requests as they are in the log.
function parse(bytes: Buffer, feed: 'bytes' | 'lines', at = 0) {
  const memory = newMemory();
  const parser = createTurnParser(ENGINE, '1.0.0', { memory, at: { stdout: at, stderr: 0 } });
  const drafts =
    feed === 'bytes' ? parser.push('stdout', bytes) : linesOf(bytes, at).flatMap((line) => parser.pushLine(line));
  const { openRequests, turnOver } = parser;
  return [...drafts, ...parser.finish(), openRequests, turnOver, parser.evidence(), parser.counts(), memory];
}

test.each(RECORDINGS.map((bytes, index) => [index, bytes] as const))('recording %i', (_, bytes) => {
  expect(bytes.length).toBeGreaterThan(0);
  expect(parse(bytes, 'lines')).toEqual(parse(bytes, 'bytes'));
  expect(parse(bytes, 'lines', 7)).toEqual(parse(bytes, 'bytes', 7));
});

test('lines with odd bytes, at the beginning of the log and after it', () => {
  const odd = fc.constantFrom(
    '{"method":"turn/started","params":{"threadId":"t","turn":{"id":"u"}}}',
    '{"id":1,"method":"item/tool/call","params":{"threadId":"t","tool":"ask_human","arguments":{"prompt":"?"}}}',
    '{"id":1e999,"method":"item/tool/call","params":{"tool":"ask_human","arguments":{"prompt":"?"}}}',
    '\u001b[1m{"id":2,"method":"item/commandExecution/requestApproval","params":{"command":"ls"}}\u001b[0m',
    '\ufeff{"method":"warning","params":{"message":"m"}}',
    '{"method":"serverRequest/resolved","params":{"requestId":1}}',
    '{"method":"warning","params":{"message":"\ufffd"}}',
    'nonsense\0',
    '[1]',
    '',
    ' ',
    '{"cut":',
  );
  const line = fc.tuple(odd, fc.constantFrom('\n', '\r\n', '\r\r\n')).map(([text, end]) => Buffer.from(text + end));
  const bad = fc.constant(Buffer.from('7b226d6574686f64223a22ff227d0a', 'hex'));
  fc.assert(
    fc.property(fc.array(fc.oneof(line, bad), { maxLength: 12 }), odd, fc.constantFrom(0, 100), (lines, last, at) => {
      const bytes = Buffer.concat([...lines, Buffer.from(last)]);
      expect(parse(bytes, 'lines', at)).toEqual(parse(bytes, 'bytes', at));
    }),
    { numRuns: runs(500), seed: 20261118 },
  );
});

test('an open request is the message that was received: an answer closes it for the parser too', () => {
  const parser = createTurnParser(ENGINE);
  const [line] = linesOf(
    Buffer.from('{"id":0,"method":"item/tool/call","params":{"tool":"ask_human","arguments":{"prompt":"Why?"}}}\n'),
  );
  if (line?.message.type !== 'request') throw new Error('the line is a request');
  parser.pushLine(line);
  expect(parser.openRequests.map(({ message }) => message)).toEqual([line.message]);
  expect(parser.openRequests[0]?.message).toBe(line.message);
  line.message.state = 'answered';
  expect([parser.openRequests, parser.evidence().questions]).toEqual([[], []]);
});

test('a request too long to be read as an event comes in pieces and must be refused', () => {
  const parser = createTurnParser(ENGINE);
  const text = `{"id":3,"method":"item/tool/call","params":{"tool":"${'x'.repeat(MAX_LINE_BYTES)}"}}\n`;
  const drafts = linesOf(Buffer.from(text)).flatMap((line) => parser.pushLine(line));
  expect(drafts.filter(({ type }) => type === 'raw.stdout')).toHaveLength(17);
  expect(parser.openRequests).toMatchObject([
    { message: { id: 3 }, question: null, refusal: 'it is too long to be asked' },
  ]);
});

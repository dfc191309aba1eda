// Any question of an agent or an MCP server is refused with an explanation, or can be shown, stored and answered.
// Nothing throws, nothing controls the terminal, and the question tool keeps working.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { readAsks } from '../../src/ask/ask-file.js';
import { hearQuestions } from '../../src/ask/witnesses.js';
import { buildAnswer } from '../../src/engines/codex-app-server/answers.js';
import {
  COMMAND_APPROVAL,
  ELICITATION,
  FILE_CHANGE_APPROVAL,
  PERMISSIONS_APPROVAL,
  readRequest,
  TOOL_CALL,
  USER_INPUT,
} from '../../src/engines/codex-app-server/requests.js';
import { newMemory } from '../../src/engines/turn-parser.js';
import { parseJson, type Json, type JsonObject } from '../../src/kernel/json.js';
import { compileSchema } from '../support/compile-schema.js';
import { mergeQuestions, parseQuestion, type Question } from '../../src/run/interaction.js';
import { createDialogue } from '../../src/terminal/answer.js';
import { renderQuestion } from '../../src/terminal/question-text.js';
import { closedValidator } from '../support/closed-validator.js';
import { fuzz, PATIENCE_MS, pick, times, type Random } from '../support/fuzz.js';
import { anyJson, mutateJson, toJsonText } from '../support/json-mutations.js';
import { requestMessage } from '../support/request-message.js';

const QUESTIONS: readonly JsonObject[] = [
  { prompt: 'Which?', options: ['a', { label: 'b', value: 2, description: 'second' }], default: 'a' },
  { kind: 'confirm', question: 'Sure?' },
  {
    kind: 'fill_fields',
    prompt: 'Both',
    fields: [
      { id: 'port', prompt: 'Port?', kind: 'open_text' },
      { id: 'db', prompt: 'DB?', options: ['x', 'y'], default: 'x' },
    ],
  },
];
const SCHEMA: JsonObject = {
  type: 'object',
  properties: {
    name: { type: 'string', minLength: 1, title: 'Name' },
    size: { type: 'integer', minimum: 0, maximum: 9 },
    on: { type: 'boolean' },
    how: { type: 'string', enum: ['a', 'b'], enumNames: ['A', 'B'] },
    many: { type: 'array', items: { type: 'string', enum: ['x', 'y'] }, maxItems: 2 },
  },
  required: ['name'],
};
const LOOPS = [
  '{"$ref":"#"}',
  '{"type":"object","properties":{"a":{"$ref":"#/properties/a"}}}',
  '{"type":"object","properties":{"a":{"type":"string","pattern":"(a+)+$"}}}',
  '{"type":"object","properties":{"a":{"anyOf":[{"$ref":"#/anyOf/0"}]}}}',
  '{"type":"object","properties":{"__proto__":{"type":"string"}}}',
  '{"type":"object","properties":{},"required":["__proto__"]}',
  `{"type":"object","properties":{${times(60, (n) => `"p${n}":{"type":"string"}`).join(',')}}}`,
];
const REQUESTS: readonly (readonly [string, JsonObject])[] = [
  [COMMAND_APPROVAL, { threadId: 't', itemId: 'i', command: 'rm -rf /', cwd: '/w', reason: 'because' }],
  [FILE_CHANGE_APPROVAL, { threadId: 't', itemId: 'i', grantRoot: '/w' }],
  [PERMISSIONS_APPROVAL, { permissions: { network: { enabled: true }, fileSystem: null }, cwd: '/w' }],
  [ELICITATION, { serverName: 's', mode: 'form', message: 'Fill', requestedSchema: SCHEMA }],
  [ELICITATION, { serverName: 's', mode: 'url', url: 'https://example.org', message: 'Open' }],
  [
    ELICITATION,
    {
      serverName: 's',
      mode: 'form',
      message: 'Call',
      _meta: { codex_approval_kind: 'mcp_tool_call', tool_name: 'x', tool_params: { a: 1 }, persist: ['session'] },
    },
  ],
  [
    USER_INPUT,
    {
      questions: [
        { id: 'q1', question: 'One?', options: [{ label: 'a', description: 'b' }] },
        { id: 'q2', header: 'Two' },
      ],
    },
  ],
  [TOOL_CALL, { tool: 'ask_human', arguments: QUESTIONS[0] as JsonObject }],
];
const explainEvent = closedValidator('rasp.schema.json');

const mutated = (value: Json, random: Random): Json =>
  times(1 + random(4), () => 0).reduce((now: Json) => JSON.parse(toJsonText(mutateJson(now, random))) as Json, value);

// As it is stored, shown and answered.
function expectUsable(question: Question, random: Random): void {
  const event = {
    protocol_version: 'rasp/1.0',
    run_id: 'run_00000000000000000000000001',
    seq: 1,
    ts: '2026-11-15T00:00:00.000Z',
    attempt_number: 1,
    source: { engine: 'parley', parser: 'none', confidence: 1 },
    event: { category: 'interaction', type: 'interaction.requested' },
    data: {
      interaction_id: 'int_1',
      asked_at: '2026-11-15T00:00:00.000Z',
      ...(JSON.parse(JSON.stringify(question)) as JsonObject),
    },
    correlation: {},
    raw_ref: null,
  };
  expect(explainEvent(event), JSON.stringify(event).slice(0, 1000)).toBeNull();
  const text = renderQuestion(
    question as Parameters<typeof renderQuestion>[0],
    { colour: false, width: pick(random, [1, 8, 40, 80]) } as Parameters<typeof renderQuestion>[1],
  );
  expect(text).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/);
  const dialogue = createDialogue(question as Parameters<typeof createDialogue>[0]);
  for (let line = 0; line < 70; line += 1) {
    dialogue.prompt();
    const result = dialogue.give(
      pick(random, [
        '1',
        '2',
        'a',
        'y',
        'n',
        'no: later',
        '',
        ' ',
        '\\',
        '99999999999999999999',
        '__proto__',
        '/finish',
        '\u001b[2J',
        'x'.repeat(500),
      ]),
    );
    if (result.kind === 'reply') return void JSON.stringify(result.response);
  }
}

test(
  'any input of the question tool becomes a question that can be shown and answered',
  async () => {
    await fuzz('questions', 120, (random) => {
      const asked = times(1 + random(3), () =>
        random(5) === 0 ? (JSON.parse(toJsonText(anyJson(random))) as Json) : mutated(pick(random, QUESTIONS), random),
      );
      const questions = asked.map((input) => parseQuestion(input, 'tool'));
      for (const question of questions) expectUsable(question, random);
      const merged = mergeQuestions(questions);
      if (merged) expectUsable(merged, random);
      hearQuestions(
        asked.filter(
          (input): input is JsonObject => typeof input === 'object' && input !== null && !Array.isArray(input),
        ),
        questions,
        { nonce: 'n', printed: ['n', null] },
      );
    });
  },
  PATIENCE_MS,
);

test(
  'a request of the app-server becomes an answerable question, or nobody is asked',
  async () => {
    await fuzz('native requests', 200, (random) => {
      const [method, params] = pick(random, REQUESTS);
      const response =
        random(4) === 0 && method === ELICITATION
          ? { ...params, requestedSchema: parseJson(pick(random, LOOPS)) as Json }
          : mutated(params, random);
      const body = typeof response === 'object' && response !== null && !Array.isArray(response) ? response : {};
      const request = readRequest(requestMessage(1, method, body), newMemory('t'));
      const { question } = request;
      if (question === null) return;
      expectUsable(question, random);
      const responses: Json[] = [{ decision: pick(random, ['approve', 'approve_for_session', 'decline', 'cancel']) }];
      if (question.response_schema) {
        const compiled = compileSchema(question.response_schema);
        expect(compiled.ok, JSON.stringify(question.response_schema).slice(0, 500)).toBe(true);
        // A person can always decline.
        if (compiled.ok) expect(compiled.explain({ decision: 'decline' })).toBeNull();
        responses[0] = { decision: 'decline' };
      }
      if (question.kind !== 'approval')
        responses.push(
          mutated({ name: 'x', size: '3', on: 'yes', q1: 'a', q2: ['b'] }, random),
          JSON.parse(toJsonText(anyJson(random))) as Json,
        );
      for (const response of responses) expect(() => JSON.stringify(buildAnswer(request, response))).not.toThrow();
    });
  },
  PATIENCE_MS,
);

test(
  'the question tool answers or refuses every call in words, and continues',
  async () => {
    const dir = mkdtempSync(join(tmpdir(), 'parley-fuzz-ask-'));
    const file = join(dir, 'asks.jsonl');
    const child = spawn(
      process.execPath,
      [fileURLToPath(new URL('../../bin/parley.js', import.meta.url)), 'mcp-ask', '--file', file, '--nonce', 'n'],
      { stdio: ['pipe', 'pipe', 'pipe'] },
    );
    let printed = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => (printed += text));
    const answers = new Map<unknown, JsonObject>();
    createInterface({ input: child.stdout }).on('line', (line) => {
      const answer = JSON.parse(line) as JsonObject;
      answers.set(answer['id'], answer);
    });
    const exited = new Promise<number | null>((resolve) => child.once('exit', resolve));
    const say = (text: string): void => void child.stdin.write(`${text}\n`);
    try {
      say(
        '{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-06-18",' +
          '"capabilities":{},"clientInfo":{"name":"t","version":"1"}}}',
      );
      say('{"jsonrpc":"2.0","method":"notifications/initialized"}');
      const calls: number[] = [];
      await fuzz('ask tool', 40, (random, index) => {
        const args =
          random(12) === 0
            ? `${'{"prompt":'.repeat(20_000)}"x"${'}'.repeat(20_000)}`
            : random(20) === 0
              ? JSON.stringify({ prompt: 'x'.repeat(2_000_000) })
              : JSON.stringify(mutated(pick(random, QUESTIONS), random));
        calls.push(index);
        say(`{"jsonrpc":"2.0","id":${index},"method":"tools/call","params":{"name":"ask_human","arguments":${args}}}`);
        // Input that is not a message creates no question.
        if (random(6) === 0)
          say(
            pick(random, [
              'nonsense',
              '[]',
              '{}',
              '{"jsonrpc":"2.0"}',
              '{"jsonrpc":"2.0","id":null,"method":"tools/call"}',
              '\u0000',
              '{"jsonrpc":"2.0","id":{},"result":1}',
            ]),
          );
      });
      await expect.poll(() => calls.filter((id) => !answers.has(id)), { timeout: 60_000 }).toEqual([]);
      const taken = calls.filter((id) => JSON.stringify(answers.get(id)).includes('Your question is recorded'));
      expect((await readAsks(file, 'n')).questions).toHaveLength(taken.length);
      expect(taken.length).toBeGreaterThan(10);
      child.stdin.end();
      expect(await exited).toBe(0);
      expect(printed).not.toMatch(/\n {4}at /);
    } finally {
      child.kill('SIGKILL');
      rmSync(dir, { recursive: true, force: true });
    }
  },
  PATIENCE_MS,
);

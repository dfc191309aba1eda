// The question tool as a program that an engine talks to, and the handling of a question that only the tool has
// recorded.
import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { appendAsk, readAsks } from '../../src/ask/ask-file.js';
import { writeReceipt } from '../../src/ask/receipt.js';
import { runFolder } from '../../src/journal/run-folder.js';
import { createRoot, expectSound, journalOf, openBench, startsIn } from '../support/orchestrated.js';

const ENTRY = fileURLToPath(new URL('../../bin/parley.js', import.meta.url));

async function converse(
  file: string,
  version: string,
  ...calls: object[]
): Promise<{ answers: Record<string, unknown>[]; code: number | null }> {
  const child = spawn(process.execPath, [ENTRY, 'mcp-ask', '--file', file, '--nonce', 'nonce-1'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const answers: Record<string, unknown>[] = [];
  const exited = new Promise<number | null>((resolve) => child.once('exit', resolve));
  const requests = [
    {
      jsonrpc: '2.0',
      id: 0,
      method: 'initialize',
      params: { protocolVersion: version, capabilities: {}, clientInfo: { name: 'test', version: '1' } },
    },
    { jsonrpc: '2.0', method: 'notifications/initialized' },
    ...calls.map((call, index) => ({ jsonrpc: '2.0', id: index + 1, ...call })),
  ];
  for (const request of requests) child.stdin.write(`${JSON.stringify(request)}\n`);
  for await (const line of createInterface({ input: child.stdout })) {
    answers.push(JSON.parse(line) as Record<string, unknown>);
    // The engine has its response and disconnects.
    if (answers.length === calls.length + 1) child.stdin.end();
  }
  return { answers, code: await exited };
}

const ask = (args: object) => ({ method: 'tools/call', params: { name: 'ask_human', arguments: args } });

test.each(['2024-11-05', '2025-06-18', '2025-11-25'])(
  'it speaks MCP %s, writes each question down before it answers, and ends when the engine does',
  async (version) => {
    const file = join(createRoot(), 'asks.jsonl');
    const { answers, code } = await converse(
      file,
      version,
      { method: 'tools/list' },
      ask({ prompt: 'Which? 漢字', options: ['a', { label: 'b', value: 2 }], wait_for_previous: true }),
      ask({ prompt: 5, foo: 1 }),
      { method: 'tools/call', params: { name: 'other', arguments: {} } },
    );
    expect(code).toBe(0);
    expect(answers[0]).toMatchObject({ result: { protocolVersion: version, serverInfo: { name: 'parley' } } });
    expect(answers[1]).toMatchObject({
      result: { tools: [{ name: 'ask_human', annotations: { readOnlyHint: true } }] },
    });
    expect(JSON.stringify(answers[2])).toContain('nonce-1');
    // These could not be answered, so the agent should try again.
    expect(answers[3]).toMatchObject({ result: { isError: true } });
    expect(answers[4]).toMatchObject({ result: { isError: true } });
    expect(await readAsks(file, 'nonce-1')).toEqual({
      listed: true,
      questions: [{ prompt: 'Which? 漢字', options: ['a', { label: 'b', value: 2 }], wait_for_previous: true }],
    });
    expect(readFileSync(file, 'utf8').endsWith('\n')).toBe(true);
  },
);

test('a form without fields is refused with a message for the agent; with a field or prompt it is taken', async () => {
  const file = join(createRoot(), 'asks.jsonl');
  const { answers } = await converse(
    file,
    '2025-06-18',
    ask({ fields: [] }),
    ask({ fields: [], prompt: 'Which?' }),
    ask({ fields: [{ id: 'port', prompt: 'Which port?' }] }),
  );
  expect(answers[1]).toMatchObject({
    result: {
      isError: true,
      content: [{ text: expect.stringMatching(/question is missing.*"prompt".*"fields"/) as string }],
    },
  });
  for (const taken of answers.slice(2)) expect(taken).not.toHaveProperty('result.isError');
  expect((await readAsks(file, 'nonce-1')).questions).toEqual([
    { fields: [], prompt: 'Which?' },
    { fields: [{ id: 'port', prompt: 'Which port?' }] },
  ]);
});

test('a question the tool took before the engine could print it is reported with the failure of its run', async () => {
  const root = createRoot();
  const bench = await openBench(root);
  const { run_id: runId } = await bench.orchestrator.create({
    engine: 'opencode',
    prompt: '[[hang]]',
    execution_mode: 'interactive',
    permission: 'full',
  });
  while (startsIn(root).length === 0) await new Promise((resolve) => setImmediate(resolve));
  const { asks } = runFolder(bench.data.path, runId).attempt(1);
  mkdirSync(dirname(asks), { recursive: true });
  appendAsk(asks, 'any', { type: 'asked', question: { prompt: 'Shall I delete it?' } });
  // A killed process appends nothing more; this one would, next to the next process.
  const journal = join(runFolder(bench.data.path, runId).path, 'rasp.jsonl');
  const lines = (): number => readFileSync(journal, 'utf8').split('\n').length - 1;
  await expect.poll(async () => lines() === (await bench.data.store.loadRun(runId))?.heads.rasp_seq).toBe(true);
  await bench.data.close();
  const again = await openBench(root);
  expect(await expectSound(again, runId)).toMatchObject({
    status: 'failed',
    error: { code: 'ORCHESTRATOR_RESTART_INTERRUPTED', details: { unanswered: { prompt: 'Shall I delete it?' } } },
  });
  await again.close();
  while (bench.failures.length === 0) await new Promise((resolve) => setImmediate(resolve));
});

test.each([
  ['its own nonce', writeReceipt('NONCE'), 0],
  ['the nonce of another turn', writeReceipt('int_before'), 1],
  ['no nonce', 'Question recorded.', 1],
])(
  'a question whose printed call got %s is asked once, and the difference is reported',
  async (_what, answer, message) => {
    const root = createRoot();
    const question = { prompt: 'Which?' };
    // A short form of Codex with our tool: the tool records the question, the output shows the call.
    const script = `const option = 'mcp_servers.parley.args=';
    const args = JSON.parse(process.argv.find((arg) => arg.startsWith(option)).slice(option.length));
    const [file, nonce] = ['--file', '--nonce'].map((flag) => args[args.indexOf(flag) + 1]);
    const text = ${JSON.stringify(answer)}.replace('NONCE', nonce);
    const records = ['{"type":"listed"', '{"type":"asked","question":${JSON.stringify(question)}'];
    const signed = records.map((record) => record + ',"nonce":' + JSON.stringify(nonce) + '}\\n');
    require('fs').writeFileSync(file, signed.join(''));
    const result = { content: [{ type: 'text', text }] };
    const item = { id: 'item_0', type: 'mcp_tool_call', server: 'parley', tool: 'ask_human',
      arguments: ${JSON.stringify(question)}, result, error: null, status: 'completed' };
    for (const line of [
      { type: 'thread.started', thread_id: '01a1e065-6fe8-7fd2-a5f7-dea3d46cd55c' },
      { type: 'item.completed', item },
      { type: 'turn.completed', usage: {} },
    ]) console.log(JSON.stringify(line))`;
    const bench = await openBench(root, {
      runtime: {
        findProgram: async () => [process.execPath, '-e', script, '--'],
        hasSession: async () => true,
        askTool: ['ask'],
      },
    });
    const { run_id: runId } = await bench.orchestrator.create({
      engine: 'codex',
      prompt: 'go on',
      execution_mode: 'interactive',
      permission: 'full',
    });
    await bench.orchestrator.waitUntilIdle(runId);
    expect(await expectSound(bench, runId)).toMatchObject({ status: 'waiting_user' });
    expect((await bench.data.store.loadPendingInteraction(runId))?.question).toMatchObject({
      prompt: 'Which?',
      kind: 'open_text',
    });
    const { rasp } = await journalOf(bench, runId);
    expect(rasp.filter(({ data }) => data['code'] === 'ASK_WITNESS_MISSING')).toHaveLength(message);
    await bench.close();
  },
);

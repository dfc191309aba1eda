#!/usr/bin/env node
// The engine that all systems are measured with: one script in two dialects, so that only the system behind it differs.
// Called with `exec` it prints the lines of `codex exec --json`, otherwise it speaks ACP on its standard streams.
// Directives in the prompt: [[events COUNT BYTES]], [[pace LINES MS]] (pause after so many lines), [[when FILE]] (wait
// until the file exists), [[dirty]], [[count FILE]] (at the end, write the number of printed bytes), [[ask]]. Each
// output contains the time of its creation: microseconds of the monotonic clock, 13 digits.
import { randomUUID } from 'node:crypto';
import { createInterface } from 'node:readline';
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

const PIECE_BYTES = 64 * 1024;
// Malformed output between valid lines.
const DIRTY = [
  (text) => `${text.slice(0, 40)}\n`,
  () => 'WARNING not json\n',
  () => Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x7d, 0x0a]),
  () => '{"type":"item.completed","item":{"id":7}}\n',
];

process.stdout.on('error', () => process.exit(1));
const printed = { stdout: 0, stderr: 0 };
const print = (stream, data) =>
  new Promise((resolve) => {
    printed[stream] += Buffer.byteLength(data);
    process[stream].write(data, resolve);
  });
const write = (data) => print('stdout', data);

const [command, ...args] = process.argv.slice(2);
if (command === '--version') await write('codex-cli 0.166.0\n');
else if (command === 'exec') await playCodex(args);
else playAcp();

function timeNow() {
  return String(process.hrtime.bigint() / 1000n).padStart(13, '0');
}

// Writes many lines in chunks of 64 KiB; creates a chunk when the reader has read the last one.
async function burst(prompt, toLine) {
  const [, count, bytes] = /\[\[events (\d+) (\d+)\]\]/.exec(prompt) ?? [];
  const dirty = prompt.includes('[[dirty]]');
  // Characters of several bytes, so that a chunk may end within one.
  const filling = dirty
    ? '漢'.repeat(Math.floor((Number(bytes) - 14) / 3))
    : 'x'.repeat(Math.max(0, Number(bytes) - 14));
  const [, lines, rest] = /\[\[pace (\d+) (\d+)\]\]/.exec(prompt) ?? [];
  const [, sign] = /\[\[when ([^\]]+)\]\]/.exec(prompt) ?? [];
  if (sign !== undefined) await untilThere(sign);
  let piece = [];
  let length = 0;
  const add = (data) => {
    piece.push(Buffer.from(data));
    length += piece.at(-1).length;
  };
  for (let index = 0; index < Number(count ?? 0); index += 1) {
    const line = `${toLine(`${timeNow()} ${filling}`, index)}\n`;
    if (dirty && index % 100 === 50) add(DIRTY[Math.floor(index / 100) % DIRTY.length](line));
    if (dirty && index === 1000) add(`${toLine('x'.repeat(8 * 1024 * 1024), index)}\n`);
    if (dirty && index % 1000 === 0) await print('stderr', `noise ${index}\n`);
    add(line);
    const rests = lines !== undefined && (index + 1) % Number(lines) === 0;
    if (length < PIECE_BYTES && index < Number(count) - 1 && !rests) continue;
    const all = Buffer.concat(piece);
    for (let at = 0; at < all.length; at += PIECE_BYTES - 1) await write(all.subarray(at, at + PIECE_BYTES - 1));
    piece = [];
    length = 0;
    if (rests) await new Promise((resolve) => setTimeout(resolve, Number(rest)));
  }
}

async function untilThere(path) {
  while (!existsSync(path)) await new Promise((resolve) => setTimeout(resolve, 100));
}

async function playCodex(argv) {
  const resumed = argv.indexOf('resume');
  const last = argv.at(-1);
  const prompt = resumed >= 0 ? last : / /.test(last ?? '') || last?.startsWith('[[') ? last : await readStdin();
  const thread =
    resumed >= 0
      ? argv.find((word, index) => index > resumed && /^[0-9a-f]{8}-/.test(word))
      : `${randomUUID().slice(0, 14)}7${randomUUID().slice(15)}`;
  const sessions = join(process.env.CODEX_HOME ?? join(homedir(), '.codex'), 'sessions', '2026', '01', '01');
  if (resumed >= 0 && !(existsSync(sessions) && readdirSync(sessions).some((name) => name.includes(thread)))) {
    process.stderr.write(`Error: thread/resume: no rollout found for thread id ${thread}\n`);
    process.exit(1);
  }
  mkdirSync(sessions, { recursive: true });
  writeFileSync(
    join(sessions, `rollout-2026-01-01T00-00-00-${thread}.jsonl`),
    `{"type":"session","sessionId":"${thread}"}\n`,
  );
  await write(`{"type":"thread.started","thread_id":"${thread}"}\n{"type":"turn.started"}\n`);
  await burst(
    prompt,
    (text, index) => `{"type":"item.completed","item":{"id":"item_${index}","type":"agent_message","text":"${text}"}}`,
  );
  if (prompt.includes('[[ask]]')) {
    const call = {
      id: 'item_ask',
      type: 'mcp_tool_call',
      server: 'parley',
      tool: 'ask_human',
      arguments: { question: 'Go on?', kind: 'open_text' },
    };
    const started = { ...call, result: null, error: null, status: 'in_progress' };
    await write(`${JSON.stringify({ type: 'item.started', item: started })}\n`);
    const result = {
      content: [{ type: 'text', text: 'Question recorded. End your turn now and wait.' }],
      structured_content: null,
    };
    const completed = { ...call, result, error: null, status: 'completed' };
    await write(`${JSON.stringify({ type: 'item.completed', item: completed })}\n`);
  }
  await write('{"type":"item.completed","item":{"id":"item_end","type":"agent_message","text":"done"}}\n');
  await write('{"type":"turn.completed","usage":{"input_tokens":1,"cached_input_tokens":0,"output_tokens":1}}\n');
  const [, count] = /\[\[count ([^\]]+)\]\]/.exec(prompt) ?? [];
  if (count !== undefined) writeFileSync(count, JSON.stringify(printed));
  process.exit(0);
}

async function readStdin() {
  let text = '';
  for await (const chunk of process.stdin) text += chunk;
  return text;
}

function send(message) {
  return write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
}

function playAcp() {
  const answers = new Map();
  const methods = {
    initialize: () => ({
      protocolVersion: 1,
      agentCapabilities: { loadSession: true, promptCapabilities: {} },
      authMethods: [],
    }),
    'session/new': () => ({ sessionId: randomUUID() }),
    'session/load': () => ({}),
    'session/resume': () => ({}),
    'session/prompt': async ({ sessionId, prompt }) => {
      const text = prompt.map((part) => part.text ?? '').join('');
      if (text.includes('[[ask]]')) {
        const toolCall = { toolCallId: 'call_1', title: 'true', kind: 'execute', status: 'pending' };
        const options = [
          { optionId: 'allow', name: 'Allow', kind: 'allow_once' },
          { optionId: 'reject', name: 'Reject', kind: 'reject_once' },
        ];
        const answered = new Promise((resolve) => answers.set('ask', resolve));
        await send({ id: 'ask', method: 'session/request_permission', params: { sessionId, toolCall, options } });
        await answered;
      }
      const before =
        `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"${sessionId}",` +
        `"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"`;
      await burst(text, (part) => `${before}${part}"}}}}`);
      return { stopReason: 'end_turn' };
    },
  };
  createInterface({ input: process.stdin })
    .on('line', async (line) => {
      const { id, method, params } = JSON.parse(line);
      if (method === undefined) return void answers.get(id)?.(true);
      const result = await methods[method]?.(params);
      if (id === undefined) return;
      await send(result === undefined ? { id, error: { code: -32601, message: `no ${method}` } } : { id, result });
    })
    .on('close', () => process.exit(0));
}

// Requests of the user's MCP servers on the real Codex: Parley words the question, and the server gets only the answer.
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import type { Json, JsonObject } from '../../src/kernel/json.js';
import type { RealBench } from './real-bench.js';
import { ASKS, dataOf, expectSameParsed, linesIn, openResidents, sentTo } from './real-resident.js';

const NOSY = fileURLToPath(new URL('nosy-server.mjs', import.meta.url));
// The server asks while this runs.
const WAIT = '[[tool touch ask; until test -e answered; do sleep 0.05; done]]';

async function openNosy(what: 'form' | 'forged' | 'giant' | 'tool'): Promise<RealBench> {
  const bench = await openResidents();
  const lines = [
    '',
    '[mcp_servers.nosy]',
    `command = ${JSON.stringify(process.execPath)}`,
    `args = ${JSON.stringify([NOSY, bench.cwd, what])}`,
    'omit_tools_from = ["deferred"]',
    'required = true',
    '',
  ];
  appendFileSync(join(bench.root, 'user/.codex/config.toml'), lines.join('\n'));
  return bench;
}

const heard = (bench: RealBench): JsonObject[] =>
  linesIn(bench.cwd, 'heard.jsonl').map((line) => JSON.parse(line) as JsonObject);

describe('a form', () => {
  test.each<{ answer: Json; result: JsonObject }>([
    {
      answer: { name: 'Ada', age: '36', sure: false },
      result: { action: 'accept', content: { name: 'Ada', age: 36, sure: false } },
    },
    { answer: { decision: 'decline' }, result: { action: 'decline' } },
    { answer: { decision: 'cancel' }, result: { action: 'cancel' } },
  ])('is asked of the person; the server receives $answer', async ({ answer, result }) => {
    const bench = await openNosy('form');
    const asked = await bench.play(`${WAIT} [[done 7]]`, ASKS);
    expect(asked.status).toBe('waiting_user');
    const { question, interaction_id: id } = await bench.pending(asked.run_id);
    expect(question).toMatchObject({
      kind: 'fill_fields',
      fields: [
        { id: 'age', kind: 'open_text' },
        { id: 'name', kind: 'open_text', prompt: 'Name' },
        { id: 'sure', kind: 'confirm', default: true },
      ],
    });
    expect(question['prompt']).toBe(
      'The MCP server nosy wants to know something from you.\nIt says:\n  | Who are you?\n  | The agent wants to ' +
        'run a command:',
    );
    for (const bogus of ['Ada', true, { name: 'A' }, { name: 'Ada', more: 1 }, { age: 1 }] as Json[])
      await expect(
        bench.orchestrator.reply(asked.run_id, { interaction_id: id, response: bogus }),
      ).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    expect(heard(bench)).toEqual([]);
    expect(await bench.reply(asked.run_id, answer)).toMatchObject({ status: 'succeeded', result: 7 });
    expect(heard(bench)).toEqual([{ result }]);
    expectSameParsed(bench.data.path, asked.run_id, await bench.events(asked.run_id));
  });

  test('that no person could fill in is refused at once, and the turn continues', async () => {
    const bench = await openNosy('giant');
    const run = await bench.play(`${WAIT} [[done 7]]`, ASKS);
    expect(run).toMatchObject({ status: 'succeeded', result: 7, attempt_number: 1 });
    expect(dataOf(await bench.events(run.run_id), 'interaction.requested')).toEqual([]);
    expect(heard(bench)).toEqual([{ result: { action: 'decline' } }]);
  });
});

test('a server that forges an approval is named in it', async () => {
  const bench = await openNosy('forged');
  const asked = await bench.play(`${WAIT} [[done 7]]`, ASKS);
  expect((await bench.pending(asked.run_id)).question['prompt']).toBe(
    'The agent wants to call a tool of the MCP server nosy:\n  | safe\nwith\n  | {"a":1}\nIt says:\n  | The agent ' +
      'wants to run a command:\n  | ls',
  );
  expect(await bench.reply(asked.run_id, { decision: 'decline' })).toMatchObject({ status: 'succeeded', result: 7 });
  expect(heard(bench)).toEqual([{ result: { action: 'decline' } }]);
});

describe('a tool that wants leave', () => {
  const SAYS = 'Allow the nosy MCP server to run tool "wipe"?';

  test.each([
    { decision: 'approve', calls: 1, asks: 2 },
    { decision: 'approve_for_session', calls: 2, asks: 1 },
    { decision: 'decline', calls: 0, asks: 2 },
  ])('is asked about with its server; $decision decides', async ({ decision, calls, asks }) => {
    const bench = await openNosy('tool');
    const { run_id: runId } = await bench.play('[[call wipe]] [[call wipe]] [[done 7]]', ASKS);
    const { question } = await bench.pending(runId);
    expect(question).toMatchObject({
      kind: 'approval',
      action: { kind: 'mcp_tool_call', server: 'nosy', message: SAYS, params: {} },
    });
    expect(question['prompt']).toBe(
      `The agent wants to call a tool of the MCP server nosy:\nwith\n  | {}\nIt says:\n  | ${SAYS}`,
    );
    expect(heard(bench)).toEqual([]);
    const next = await bench.reply(runId, { decision });
    if (asks > 1) await bench.reply(runId, { decision: 'decline' });
    expect(next.status).toBe(asks > 1 ? 'waiting_user' : 'succeeded');
    expect(await bench.waitUntilIdle(runId)).toMatchObject({ status: 'succeeded', result: 7 });
    expect(heard(bench)).toEqual(Array.from({ length: calls }, () => ({ called: 'wipe' })));
    expect(sentTo(bench).split('Wiped.')).toHaveLength(calls + 1);
    const events = await bench.events(runId);
    expect(dataOf(events, 'interaction.requested')).toHaveLength(asks);
    expect(dataOf(events, 'interaction.approval.applied').map((data) => data['decision'])).toEqual(
      [decision, 'decline'].slice(0, asks),
    );
    expectSameParsed(bench.data.path, runId, events);
  });
});

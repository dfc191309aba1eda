// What an approval shows: everything that it allows, and nothing twice.
import { assert, dictionary, jsonValue, property, record, string } from 'fast-check';
import { expect, test } from 'vitest';
import { readApproval, type ApprovalText } from '../../console/src/state/approval-text.js';
import { readRequest } from '../../src/engines/codex-app-server/requests.js';
import { newMemory } from '../../src/engines/turn-parser.js';
import type { JsonObject } from '../../src/kernel/json.js';
import { requestMessage } from '../support/request-message.js';

function show(method: string, params: JsonObject): ApprovalText {
  const { question } = readRequest(requestMessage(0, method, params), newMemory());
  return readApproval(question?.prompt ?? '', question?.action);
}

const COMMAND = 'item/commandExecution/requestApproval';
const askPermissions = (permissions: JsonObject): ApprovalText =>
  show('item/permissions/requestApproval', { permissions, cwd: '/shop' });

test('a command is shown once, with its folder and the reason', () => {
  expect(show(COMMAND, { command: 'npm test', cwd: '/shop', reason: 'to be sure\nof it' })).toEqual({
    title: 'command',
    command: 'npm test',
    values: [['cwd', '/shop']],
    reason: 'to be sure\nof it',
    rest: '',
  });
});

test('network access alone is a title; with anything else the permissions are shown as they are', () => {
  expect(askPermissions({ network: { enabled: true }, fileSystem: null })).toMatchObject({
    title: 'network',
    values: [['cwd', '/shop']],
    rest: '',
  });
  for (const permissions of [
    { network: { enabled: false } },
    { network: { enabled: true, hosts: ['*'] } },
    { network: { enabled: true }, fileSystem: { write: ['/'] } },
  ])
    expect(askPermissions(permissions)).toMatchObject({
      title: 'permissions',
      values: [
        ['permissions', JSON.stringify(permissions)],
        ['cwd', '/shop'],
      ],
    });
});

test('a change that cannot be shown says so', () => {
  const params = { itemId: 'i', grantRoot: '/etc' };
  const { question } = readRequest(requestMessage(0, 'item/fileChange/requestApproval', params), newMemory());
  const { title, values, rest } = readApproval(question?.prompt ?? '', question?.action);
  expect(title).toBe('file_change');
  expect(values).toContainEqual(['grant_root', '/etc']);
  expect(rest).toBe(question?.prompt.split('\n')[1]);
});

test('a page of an MCP server is shown with the name of the server', () => {
  const page = show('mcpServer/elicitation/request', {
    serverName: 's',
    mode: 'url',
    url: 'https://x',
    message: 'Pay',
  });
  expect(page.title).toBe('open_url');
  expect(page.rest).toContain('Pay');
  expect(page.values).toEqual([
    ['server', 's'],
    ['url', 'https://x'],
  ]);
});

test('a prompt without an action, of an unknown kind or with unknown lines is kept', () => {
  expect(readApproval('May this command be run?\nls')).toMatchObject({
    title: null,
    rest: 'May this command be run?\nls',
  });
  expect(readApproval('Do this:\n  | x', { kind: 'new', what: 'x' })).toMatchObject({
    title: null,
    values: [
      ['kind', 'new'],
      ['what', 'x'],
    ],
    rest: 'Do this:\n  | x',
  });
  expect(readApproval('Run:\n  | ls\nand then\n  | rm', { kind: 'command', command: 'ls' }).rest).toBe(
    'and then\n  | rm',
  );
});

test('every value of an action and of its prompt is shown, whatever is in it', () => {
  const text = string({ unit: 'binary', minLength: 1 });
  const params = record(
    {
      command: text,
      cwd: text,
      reason: text,
      environmentId: text,
      additionalPermissions: dictionary(text, jsonValue()),
    },
    { requiredKeys: ['command'] },
  );
  assert(
    property(params, (input) => {
      const { question } = readRequest(requestMessage(0, COMMAND, input as JsonObject), newMemory());
      if (!question) return;
      const { command, values, reason, rest } = readApproval(question.prompt, question.action);
      const shown = [command ?? '', reason ?? '', rest, ...values.map(([, value]) => value)];
      for (const [name, value] of Object.entries(question.action ?? {}))
        if (name !== 'kind') expect(shown).toContain(typeof value === 'string' ? value : JSON.stringify(value));
      for (const line of question.prompt.split('\n').filter((each) => each.startsWith('  | ')))
        expect(shown.join('\n')).toContain(line.slice(4));
    }),
  );
});

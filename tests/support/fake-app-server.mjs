// A scripted `codex app-server`: responds like the real one, and misbehaves as the prompt of a turn or FAKE (words)
// demands. Requests whose method begins with test/ are for tests only.
import { spawn } from 'node:child_process';

const words = new Set((process.env.FAKE ?? '').split(' '));
const out = (text) => process.stdout.write(text);
const send = (message) => out(`${JSON.stringify(message)}\n`);
const notify = (method, params) => send({ method, params, emittedAtMs: 1 });
const refuse = (id, message) => send({ error: { code: -32600, message }, id });

let threads = 0;
let turns = 0;
const prompts = new Map();
const history = new Map();

const started = (threadId, id) => notify('turn/started', { threadId, turn: { id, status: 'inProgress' } });
const completed = (threadId, id, status = 'completed') => {
  prompts.delete(threadId);
  notify('turn/completed', { threadId, turn: { id, status } });
};

function newThread(id = `thread-${(threads += 1)}`, ephemeral = false) {
  return { thread: { id, turns: [], ephemeral }, cwd: '/', sandbox: { type: 'readOnly' } };
}

function startTurn(id, { threadId, input }) {
  const prompt = input[0].text;
  const turnId = `turn-${(turns += 1)}`;
  prompts.set(threadId, { prompt, turnId });
  history.set(threadId, [...(history.get(threadId) ?? []), turnId]);
  const answer = () => send({ id, result: { turn: { id: turnId, status: 'inProgress' } } });
  if (prompt === 'unanswered') return undefined;
  if (prompt === 'refused') return refuse(id, 'no');
  if (prompt === 'end first') return void [started(threadId, turnId), completed(threadId, turnId), answer()];
  answer();
  if (prompt === 'late') return undefined;
  started(threadId, turnId);
  if (prompt === 'garbage') out('not JSON\n[1]\r\n{"id":77,"result":{}}\n\n{"id":{},"method":"odd"}\n');
  if (prompt === 'asks oddly') send({ method: 'currentTime/read', id: 7, params: {} });
  if (prompt === 'asks')
    return send({ method: 'item/commandExecution/requestApproval', id: 0, params: { threadId, command: 'rm' } });
  if (['long', 'mute', 'deaf', 'forgotten'].includes(prompt)) return undefined;
  return completed(threadId, turnId);
}

const methods = {
  initialize: (id) => {
    if (words.has('hangs')) return undefined;
    if (words.has('dies')) return process.exit(3);
    return send({
      id,
      result: { userAgent: 'fake/1', codexHome: process.env.CODEX_HOME, platformFamily: 'unix', platformOs: 'linux' },
    });
  },
  'thread/start': (id, { ephemeral }) => send({ id, result: newThread(undefined, ephemeral) }),
  'thread/resume': (id, { threadId }) => send({ id, result: newThread(words.has('confused') ? 'another' : threadId) }),
  'thread/fork': (id, { threadId }) => send({ id, result: newThread(words.has('confused') ? threadId : undefined) }),
  'thread/list': (id) => send({ id, result: { data: [], nextCursor: null } }),
  'thread/turns/list': (id, { threadId, cursor }) => {
    if (words.has('old'))
      return refuse(id, 'Invalid request: unknown variant `thread/turns/list`, expected one of `initialize`');
    // Two per page.
    const all = (history.get(threadId) ?? []).toReversed().map((turn) => ({ id: turn, status: 'completed' }));
    const from = Number(cursor ?? 0);
    return send({
      id,
      result: { data: all.slice(from, from + 2), nextCursor: from + 2 < all.length ? String(from + 2) : null },
    });
  },
  'thread/revert': (id, { threadId }) =>
    words.has('revert-refused')
      ? refuse(id, 'thread/revert only supports paginated threads')
      : words.has('revert-fails')
        ? send({ id, error: { code: -32603, message: 'internal error' } })
        : send({ id, result: newThread(threadId) }),
  'thread/rollback': (id, { threadId }) =>
    words.has('old')
      ? send({ id, result: newThread(threadId) })
      : refuse(id, 'Invalid request: unknown variant `thread/rollback`'),
  'turn/start': startTurn,
  'turn/interrupt': (id, { threadId, turnId }) => {
    const turn = prompts.get(threadId);
    if (turn?.prompt === 'deaf') return undefined;
    if (turn?.prompt === 'forgotten') return refuse(id, 'no active turn to interrupt');
    if (turn?.prompt !== 'mute') send({ id, result: {} });
    return completed(threadId, turnId, 'interrupted');
  },
  'thread/backgroundTerminals/clean': (id) =>
    words.has('old')
      ? refuse(id, 'thread/backgroundTerminals/clean requires experimentalApi capability')
      : send({ id, result: {} }),
  'test/started': (id, { threadId }) => {
    started(threadId, prompts.get(threadId).turnId);
    send({ id, result: {} });
  },
  'test/flood': (id, { count }) => {
    for (let n = 0; n < count; n += 1) notify('flood', { n, text: 'x'.repeat(1000) });
    send({ id, result: {} });
  },
  'test/environment': (id) =>
    send({ id, result: { env: process.env, argv: process.argv.slice(2), cwd: process.cwd() } }),
  'test/child': (id) => {
    const child = spawn('sleep', ['600'], { detached: true, stdio: 'ignore' });
    send({ id, result: { pid: child.pid } });
  },
  'test/die': () => process.stdout.write('{"id":5,"resu', () => process.exit(7)),
  'test/silence': () => undefined,
};

if (words.has('stubborn')) for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => {});
process.stderr.write('fake app-server\n');
// Splits only at line feeds: readline also splits at other characters, depending on the version of Node.
let rest = '';
process.stdin.setEncoding('utf8').on('data', (text) => {
  const lines = (rest + text).split('\n');
  rest = lines.pop() ?? '';
  lines.forEach(handleLine);
});
function handleLine(line) {
  const { id, method, params } = JSON.parse(line);
  if (method === undefined) return notify('serverRequest/answered', JSON.parse(line));
  if (id === undefined) return undefined;
  return methods[method] ? methods[method](id, params) : refuse(id, `Invalid request: unknown variant \`${method}\``);
}
process.stdin.on('end', () => (words.has('stubborn') ? setInterval(() => {}, 1000) : process.exit(0)));

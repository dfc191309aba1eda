// The methods of the client. Each one responds or throws a BadRequest, synchronously, so that requests keep their
// order.
import { arch, hostname, release } from 'node:os';
import { codexHome, newId, UUID } from '../codex-threads.mjs';
import { settingsOf, Thread, VERSION } from './thread.mjs';
import { Turn } from './turn.mjs';
import { tellUsage } from './voice.mjs';
import { answer, BadRequest, notify, optOut, refuse } from './wire.mjs';

const NO_FULL_HISTORY =
  'Full-history hydration is deprecated for paginated threads; use `excludeTurns: true`, then page with ' +
  '`thread/turns/list` and `thread/items/list`.';
const PAGE = 25;
// The threads of this process.
const loaded = new Map();
// Null before `initialize`.
let client = null;

const METHODS = {
  initialize(id, { clientInfo, capabilities }) {
    if (client) throw new BadRequest('Already initialized');
    client = { name: clientInfo.name, isExperimental: capabilities?.experimentalApi === true };
    optOut(capabilities?.optOutNotificationMethods ?? []);
    const { name, version } = clientInfo;
    answer(id, {
      userAgent:
        `${name}/${VERSION} (Linux ${release()}; ${arch() === 'x64' ? 'x86_64' : arch()}) unknown ` +
        `(${name}; ${version})`,
      codexHome,
      platformFamily: 'unix',
      platformOs: process.platform === 'darwin' ? 'macos' : 'linux',
    });
    notify('remoteControl/status/changed', {
      status: 'disabled',
      serverName: hostname(),
      installationId: newId(),
      environmentId: null,
    });
  },

  'thread/start'(id, params) {
    if (params.dynamicTools?.length > 0) needExperimental('thread/start.dynamicTools');
    const thread = new Thread({ originator: client.name, ephemeral: params.ephemeral === true }, settingsOf(params));
    loaded.set(thread.id, thread);
    answer(id, thread.toOpened());
    notify('thread/started', { thread: thread.toWire(true) });
  },

  'thread/resume'(id, params) {
    const { threadId } = params;
    const thread = loaded.get(threadId) ?? Thread.find(threadId);
    if (!thread?.isStored) throw noRollout(threadId);
    if (!loaded.has(threadId)) {
      loaded.set(threadId, thread);
      thread.abortCalls();
      thread.set(settingsOf(params, thread.settings));
      notifyHistory(params);
      notify('thread/status/changed', { threadId, status: thread.status });
    } else notifyHistory(params);
    answer(id, {
      ...thread.toOpened(params.excludeTurns ? [] : thread.turns.map(inFull)),
      collaborationMode: {
        mode: 'default',
        settings: { model: thread.settings.model, reasoning_effort: null, developer_instructions: null },
      },
      initialTurnsPage: null,
      turnsBackwardsCursor: String(thread.turns.length),
      itemsBackwardsCursor: String(thread.turns.length),
    });
    if (thread.turns.length > 0) tellUsage(thread, thread.turns.at(-1).id);
    notify('thread/goal/cleared', { threadId });
  },

  'thread/fork'(id, params) {
    const source = loaded.get(params.threadId) ?? Thread.find(params.threadId);
    if (!source?.isStored) throw noRollout(params.threadId);
    const thread = source.fork(params, settingsOf(params, source.settings), client.name);
    if (!thread) throw new BadRequest(`turn not found: ${params.lastTurnId}`);
    loaded.set(thread.id, thread);
    notifyHistory(params);
    answer(id, thread.toOpened(params.excludeTurns ? [] : thread.turns.map(inFull)));
    notify('thread/started', { thread: thread.toWire(true) });
  },

  'thread/list'(id, { limit = null, cursor = null, cwd = null, sortDirection = null }) {
    const stored = Thread.listStored().filter((thread) => !loaded.has(thread.id));
    const folders = cwd === null ? null : [cwd].flat();
    const all = [...loaded.values(), ...stored].filter(
      (thread) => thread.isStored && (folders === null || folders.includes(thread.settings.cwd)),
    );
    // Ids of threads sort by their time.
    const sorted = all.toSorted((a, b) => (a.id < b.id ? 1 : -1));
    const page = cutPage(sortDirection === 'asc' ? sorted.toReversed() : sorted, cursor, limit);
    const readStates = Object.fromEntries(page.data.map((thread) => [thread.id, unread(thread)]));
    answer(id, { ...page, data: page.data.map((thread) => thread.toWire(loaded.has(thread.id))), readStates });
  },

  'thread/turns/list'(id, { threadId, limit = null, cursor = null, sortDirection = null, itemsView = null }) {
    const thread = loaded.get(threadId) ?? Thread.find(threadId);
    if (!thread) throw noRollout(threadId);
    const turns = sortDirection === 'asc' ? thread.turns : thread.turns.toReversed();
    const page = cutPage(turns, cursor, limit);
    answer(id, {
      ...page,
      data: page.data.map(itemsView === 'full' ? inFull : itemsView === 'notLoaded' ? withoutItems : inSummary),
    });
  },

  'thread/backgroundTerminals/clean'(id, { threadId }) {
    needExperimental('thread/backgroundTerminals/clean');
    for (const command of loadedThread(threadId).commands) command.kill();
    answer(id, {});
  },

  'turn/start'(
    id,
    { threadId, input, clientUserMessageId = null, cwd, approvalPolicy, approvalsReviewer, sandboxPolicy, model },
  ) {
    const thread = loadedThread(threadId);
    if (!Array.isArray(input)) throw new BadRequest('Invalid request: missing field `input`');
    // Does not wait for a turn: the input is added to the running turn.
    if (thread.active) {
      answer(id, { turn: thread.active.accepted });
      thread.active.steer(input, clientUserMessageId);
      return;
    }
    const settings = { cwd, approvalPolicy, approvalsReviewer, sandbox: sandboxPolicy, model };
    thread.set(Object.fromEntries(Object.entries(settings).filter(([, value]) => value != null)));
    const turn = new Turn(thread, input, clientUserMessageId);
    answer(id, { turn: turn.accepted });
    void turn.play();
  },

  'turn/steer'(id, { threadId, expectedTurnId, input, clientUserMessageId = null }) {
    const turn = activeTurn(loadedThread(threadId), expectedTurnId, 'steer');
    answer(id, { turnId: turn.id });
    turn.steer(input, clientUserMessageId);
  },

  'turn/interrupt'(id, { threadId, turnId }) {
    const thread = loadedThread(threadId);
    // Like the real one: after a turn was interrupted, another interrupt never gets a response.
    if (!thread.active && thread.turns.at(-1)?.status === 'interrupted') return;
    const turn = activeTurn(thread, turnId, 'interrupt');
    answer(id, {});
    turn.interrupt();
  },
};

export function handle({ id, method, params }) {
  // A notification of the client; `initialized` contains nothing new.
  if (id === undefined) return;
  try {
    if (!Object.hasOwn(METHODS, method))
      throw new BadRequest(
        `Invalid request: unknown variant \`${method}\`, expected one of ${Object.keys(METHODS)
          .map((name) => `\`${name}\``)
          .join(', ')}`,
      );
    if (params === undefined || params === null) throw new BadRequest('Invalid request: missing field `params`');
    checkTypes(method, params);
    if (!client && method !== 'initialize') throw new BadRequest('Not initialized');
    METHODS[method](id, params);
  } catch (error) {
    if (!(error instanceof BadRequest)) throw error;
    refuse(id, error.message);
  }
}

function checkTypes(method, params) {
  if (method === 'initialize' && typeof params.clientInfo !== 'object')
    throw new BadRequest('Invalid request: missing field `clientInfo`');
  const needsThread = !['initialize', 'thread/start', 'thread/list'].includes(method);
  if (needsThread && params.threadId === undefined) throw new BadRequest('Invalid request: missing field `threadId`');
  for (const name of ['threadId', 'turnId', ...(method === 'thread/list' ? [] : ['cwd'])]) {
    const value = params[name];
    if (typeof value === 'number')
      throw new BadRequest(`Invalid request: invalid type: integer \`${value}\`, expected a string`);
  }
  if (needsThread && !UUID.test(params.threadId))
    throw new BadRequest(
      'invalid thread id: invalid character: expected an optional prefix of `urn:uuid:` followed by [0-9a-fA-F-]',
    );
}

function needExperimental(what) {
  if (!client.isExperimental) throw new BadRequest(`${what} requires experimentalApi capability`);
}

const noRollout = (threadId) => new BadRequest(`no rollout found for thread id ${threadId}`);

function loadedThread(threadId) {
  const thread = loaded.get(threadId);
  if (!thread) throw new BadRequest(`thread not found: ${threadId}`);
  return thread;
}

function activeTurn({ active }, turnId, deed) {
  if (!active) throw new BadRequest(`no active turn to ${deed}`);
  if (turnId !== active.id) throw new BadRequest(`expected active turn id \`${turnId}\` but found \`${active.id}\``);
  return active;
}

function notifyHistory({ excludeTurns }) {
  if (!excludeTurns) notify('deprecationNotice', { summary: NO_FULL_HISTORY, details: null });
}

const unread = ({ turns }) => ({
  firstUnread: turns[0] ? { type: 'turn', turnId: turns[0].id } : null,
  revision: newId(),
});
const inFull = (turn) => ({ ...turn, itemsView: 'full' });
const withoutItems = (turn) => ({ ...turn, items: [], itemsView: 'notLoaded' });
const inSummary = (turn) => ({
  ...turn,
  items: turn.items.filter(({ type }) => type === 'agentMessage').slice(-1),
  itemsView: 'summary',
});

// A cursor is the number of entries before it.
function cutPage(all, cursor, limit) {
  const from = Number(cursor ?? 0);
  const to = from + (limit ?? PAGE);
  return {
    data: all.slice(from, to),
    nextCursor: to < all.length ? String(to) : null,
    backwardsCursor: all.length === 0 ? null : String(from),
  };
}

// The output of a turn while it runs: its items from start to end, the state of its thread, the cost of its model
// calls.
import { newId } from '../codex-threads.mjs';
import { notify } from './wire.mjs';

const DELTA_CHARS = 20;
const USAGE = {
  totalTokens: 120,
  inputTokens: 100,
  cachedInputTokens: 10,
  cacheWriteInputTokens: 0,
  outputTokens: 20,
  reasoningOutputTokens: 5,
};
const RATE_LIMITS = {
  limitId: 'codex',
  limitName: null,
  normalModelSlug: null,
  primary: null,
  secondary: null,
  credits: null,
  individualLimit: null,
  spendControlReached: null,
  planType: null,
  rateLimitReachedType: null,
};

let items = 0;
export const nextItem = (kind) => `${kind}_stand_in_${process.pid}_${(items += 1)}`;
export const stamped = (body) => ({ ...body, startedAtMs: Date.now(), completedAtMs: null });

export class Voice {
  // The agent's last message; null before the first.
  lastMessage = null;
  #thread;
  #turnId;
  #hasUnpaid = false;

  constructor(thread, turnId) {
    this.#thread = thread;
    this.#turnId = turnId;
  }

  say(text) {
    const item = this.begin({
      type: 'agentMessage',
      id: nextItem('msg'),
      text: '',
      phase: null,
      memoryCitation: null,
      delivery: null,
      questions: null,
    });
    for (let at = 0; at < text.length; at += DELTA_CHARS)
      this.tell('item/agentMessage/delta', { itemId: item.id, delta: text.slice(at, at + DELTA_CHARS) });
    this.lastMessage = this.complete(item, { text });
  }

  reason(text) {
    this.complete(this.begin({ type: 'reasoning', id: nextItem('rs'), summary: [text], content: [] }), {});
  }

  hear(input, clientId) {
    this.complete(this.begin({ type: 'userMessage', id: newId(), clientId, content: input }), {});
    this.#hasUnpaid = false;
  }

  begin(body) {
    const item = stamped(body);
    this.tell('item/started', { item, startedAtMs: item.startedAtMs });
    return item;
  }

  complete(started, changes) {
    const item = { ...started, ...changes, completedAtMs: Date.now() };
    this.#thread.add(this.#turnId, item);
    this.tell('item/completed', { item, completedAtMs: item.completedAtMs });
    this.#hasUnpaid = true;
    return item;
  }

  // A call of the model has ended.
  pay() {
    if (!this.#hasUnpaid || this.#thread.active?.id !== this.#turnId) return;
    this.#hasUnpaid = false;
    this.#thread.usage += 1;
    tellUsage(this.#thread, this.#turnId);
    notify('account/rateLimits/updated', { rateLimits: RATE_LIMITS });
  }

  show(status) {
    this.#thread.status = status;
    return notify('thread/status/changed', { threadId: this.#thread.id, status });
  }

  tell(method, params) {
    notify(method, { ...params, ...this.place() });
  }

  place() {
    return { threadId: this.#thread.id, turnId: this.#turnId };
  }
}

export function tellUsage(thread, turnId) {
  const total = Object.fromEntries(Object.entries(USAGE).map(([name, tokens]) => [name, tokens * thread.usage]));
  notify('thread/tokenUsage/updated', {
    threadId: thread.id,
    turnId,
    tokenUsage: { total, last: USAGE, modelContextWindow: 258400 },
  });
}

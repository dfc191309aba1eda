// What waits for me, as it changes, and what became of my answers.
import { computed, signal } from '@preact/signals';
import { ParleyError, type InboxChange, type InboxItem, type Reply } from '../../../src/client/index.js';
import { lookAgain } from './inbox-looks.js';
import { notifies } from './notify-setting.js';
import { route } from './router.js';
import { client, lost, messageOf, open } from './server.js';
import { whileSeen } from './while-seen.js';

// The fate of an answer. One that was given by somebody else is shown too, for a moment.
export type Fate =
  | { readonly type: 'sending' }
  | { readonly type: 'accepted' }
  | { readonly type: 'answered'; readonly by: string }
  | { readonly type: 'gone'; readonly why: string }
  | { readonly type: 'refused'; readonly why: string };

const waiting = signal<ReadonlyMap<string, InboxItem>>(new Map());
export const fates = signal<ReadonlyMap<string, Fate>>(new Map());
// Everything that waits was told.
export const isKnown = signal(false);

export const inbox = computed(() => [...waiting.value.values()].toSorted((a, b) => a.asked_at.localeCompare(b.asked_at)));
// Without those that this page has answered.
export const count = computed(() => inbox.value.filter(({ interaction_id: id, state }) => state === 'pending' && fates.value.get(id)?.type !== 'accepted').length);

const LINGER_MS = 6000;
// A browser with all its connections in use sends nothing, and does not say so.
const GIVE_UP_MS = 30_000;
const listeners = new Set<(item: InboxItem) => void>();

// Told of what begins to wait while the page is open.
export function onAsked(listener: (item: InboxItem) => void): void {
  listeners.add(listener);
}

function change(work: (items: Map<string, InboxItem>) => void): void {
  const items = new Map(waiting.value);
  work(items);
  waiting.value = items;
}

function setFate(id: string, fate: Fate | null): void {
  const all = new Map(fates.value);
  if (fate === null) all.delete(id);
  else all.set(id, fate);
  fates.value = all;
}

function forget(id: string): void {
  change((items) => void items.delete(id));
  setFate(id, null);
}

function leave(id: string): void {
  setTimeout(() => forget(id), LINGER_MS);
}

// Nothing was answered here, or in vain: it goes as soon as it is known not to wait. What was decided stays to be read, and then goes.
function isUndecided(id: string): boolean {
  const fate = fates.value.get(id);
  return fate === undefined || fate.type === 'refused';
}

const isShown = computed(() => route.value.page === 'inbox');

// Until another page is shown, or this one again: only the inbox itself is worth a connection for good, of which a browser has six for
// all its windows; elsewhere a look now and then tells how many wait.
export async function watchInbox(): Promise<void> {
  const left = new AbortController();
  const wasShown = isShown.value;
  const stopWatching = isShown.subscribe((is) => is !== wasShown && left.abort());
  const stream = (signal: AbortSignal): AsyncIterable<InboxChange> => (wasShown ? client.inboxChanges({ signal, onReconnect: lost, onOpen: open }) : lookAgain(signal));
  try {
    await follow(whileSeen(stream, () => notifies.value, left.signal));
  } finally {
    stopWatching();
  }
}

async function follow(changes: AsyncIterable<InboxChange>): Promise<void> {
  // What waits now, told anew after each loss of the connection: what is not in it does not wait any more.
  let told: Set<string> | null = null;
  for await (const event of changes) {
    open();
    if (event.type === 'reset') told = new Set();
    else if (event.type === 'ready') {
      const kept = told;
      if (kept) for (const id of [...waiting.value.keys()].filter((each) => !kept.has(each) && isUndecided(each))) forget(id);
      told = null;
      isKnown.value = true;
    } else if (event.type === 'pending') {
      told?.add(event.item.interaction_id);
      const isNew = !waiting.value.has(event.item.interaction_id);
      change((items) => void items.set(event.item.interaction_id, event.item));
      if (isNew && isKnown.value) for (const listener of listeners) listener(event.item);
    } else resolved(event.item);
  }
}

function resolved(item: InboxItem): void {
  const { interaction_id: id } = item;
  if (!waiting.value.has(id)) return;
  change((items) => void items.set(id, item));
  // What came of my own answer is known better from its own answer; who was quicker, only from here.
  const fate = fates.value.get(id)?.type;
  if (fate !== 'sending' && fate !== 'accepted') setFate(id, item.state === 'answered' ? { type: 'answered', by: item.answer?.actor?.name ?? 'somebody' } : { type: 'gone', why: GONE[item.state] ?? item.state });
  leave(id);
}

const GONE: Readonly<Record<string, string>> = { auto_decided: 'its time was over, and the policy decided', canceled: 'the run was canceled', abandoned: 'the run has ended' };

export async function answer({ run_id: runId, interaction_id: id }: Pick<InboxItem, 'run_id' | 'interaction_id'>, given: Pick<Reply, 'response' | 'finish'>): Promise<boolean> {
  if (fates.value.get(id)?.type === 'sending') return false;
  setFate(id, { type: 'sending' });
  try {
    await client.reply(runId, { interaction_id: id, idempotency_key: keyOf(id, given), ...given }, { signal: AbortSignal.timeout(GIVE_UP_MS) });
    setFate(id, { type: 'accepted' });
    return true;
  } catch (error) {
    setFate(id, fateOf(error, id));
    return false;
  } finally {
    // That it does not wait any more may be told, or be missed while the connection is lost.
    if (!isUndecided(id)) leave(id);
  }
}

const TOO_LATE: ReadonlySet<string> = new Set(['RUN_NOT_WAITING', 'INTERACTION_STALE', 'REPLY_CONFLICT', 'RUN_ENDED', 'INTERACTION_NOT_FOUND', 'RUN_NOT_FOUND']);

const keys = new Map<string, string>();

// The same answer, tried again, is the same.
function keyOf(id: string, given: object): string {
  const name = `${id} ${JSON.stringify(given)}`;
  const key = keys.get(name) ?? `console-${Math.random().toString(36).slice(2)}${Date.now().toString(36)}`;
  keys.set(name, key);
  return key;
}

// Who was quicker may have been told before; else it is told in a moment.
function fateOf(error: unknown, id: string): Fate {
  if (!(error instanceof ParleyError && TOO_LATE.has(error.code))) return { type: 'refused', why: messageOf(error) };
  const by = waiting.value.get(id)?.answer?.actor?.name;
  return by === undefined ? { type: 'gone', why: error.message } : { type: 'answered', by };
}

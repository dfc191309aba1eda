// What waits for me, as it changes, and what became of my answers.
import { computed, signal } from '@preact/signals';
import { ParleyError, type InboxChange, type InboxItem, type Reply } from '../../../src/client/index.js';
import { asObject, type Json } from '../../../src/kernel/json.js';
import { isAway } from './away.js';
import { drop } from './drafts.js';
import { lookAgain } from './inbox-looks.js';
import { notifies } from './notify-setting.js';
import { route } from './router.js';
import { client, connection, lost, messageOf, open } from './server.js';

// The fate of an answer. One that was given by somebody else is shown too, for a moment.
export type Fate =
  | { readonly type: 'sending' }
  // In words, as far as it can be said; of an approval with its decision.
  | { readonly type: 'accepted'; readonly said: string; readonly decision: string | null }
  | { readonly type: 'answered'; readonly by: string }
  | { readonly type: 'gone'; readonly why: string }
  // Not by the server: it was not reached, or its answer was lost.
  | { readonly type: 'unsent' }
  | { readonly type: 'refused'; readonly why: string };

const waiting = signal<ReadonlyMap<string, InboxItem>>(new Map());
export const fates = signal<ReadonlyMap<string, Fate>>(new Map());
// Everything that waits was told.
export const isKnown = signal(false);

export const inbox = computed(() =>
  [...waiting.value.values()].toSorted((a, b) => a.asked_at.localeCompare(b.asked_at)),
);
// Without those that this page has answered.
export const count = computed(
  () =>
    inbox.value.filter(
      ({ interaction_id: id, state }) => state === 'pending' && fates.value.get(id)?.type !== 'accepted',
    ).length,
);

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

// Not while the pointer is over the list: nothing moves under it.
const leaving = new Set<string>();
let isHeld = false;

function leave(id: string): void {
  setTimeout(() => {
    leaving.add(id);
    // Where nothing is left to be pressed, nothing can be pressed by mistake.
    if (
      !isHeld ||
      ![...waiting.value.values()].some((item) => item.state === 'pending' && isUndecided(item.interaction_id))
    )
      forgetLeaving();
  }, LINGER_MS);
}

export function hold(is: boolean): void {
  isHeld = is;
  if (!is) forgetLeaving();
}

function forgetLeaving(): void {
  for (const id of leaving) forget(id);
  leaving.clear();
}

// Nothing was answered here, or in vain: it goes as soon as it is known not to wait. What was decided stays to be read,
// and then goes.
function isUndecided(id: string): boolean {
  const fate = fates.value.get(id);
  return fate === undefined || fate.type === 'refused' || fate.type === 'unsent';
}

// Only the inbox itself is worth a connection for good, of which a browser has six for all its windows; elsewhere a
// look now and then tells how many wait, and where nobody looks, seldom.
type Way = 'stream' | 'look' | 'look seldom';
const way = computed<Way>(() =>
  route.value.page === 'inbox' && (!isAway.value || notifies.value)
    ? 'stream'
    : isAway.value && !notifies.value
      ? 'look seldom'
      : 'look',
);

// Until there is a better way to do it.
export async function watchInbox(): Promise<void> {
  const { value } = way;
  const over = new AbortController();
  const stopWatching = way.subscribe((better) => better !== value && over.abort());
  try {
    await follow(
      value === 'stream'
        ? client.inboxChanges({ signal: over.signal, onReconnect: lost, onOpen: open })
        : lookAgain(over.signal, value === 'look seldom'),
    );
  } finally {
    stopWatching();
  }
}

async function follow(
  changes: AsyncIterable<InboxChange | { readonly type: 'all'; readonly items: readonly InboxItem[] }>,
): Promise<void> {
  // What waits now, told anew after each loss of the connection: what is not in it does not wait any more.
  let told: Map<string, InboxItem> | null = null;
  for await (const event of changes) {
    open();
    if (event.type === 'reset') told = new Map();
    else if (event.type === 'ready') {
      if (told) takeAll(told);
      told = null;
    } else if (event.type === 'all') takeAll(new Map(event.items.map((item) => [item.interaction_id, item])));
    else if (event.type === 'pending') {
      if (told) told.set(event.item.interaction_id, event.item);
      else take([event.item]);
    } else resolved(event.item);
  }
}

function takeAll(told: ReadonlyMap<string, InboxItem>): void {
  for (const id of [...waiting.value.keys()].filter((each) => !told.has(each) && isUndecided(each))) {
    // Nothing goes from under a pointer.
    if (!isHeld) forget(id);
    else {
      setFate(id, { type: 'gone', why: 'it does not wait any more' });
      leave(id);
    }
  }
  take([...told.values()]);
  isKnown.value = true;
}

function take(items: readonly InboxItem[]): void {
  const fresh = items.filter(({ interaction_id: id }) => !waiting.value.has(id));
  change((all) => {
    for (const item of items) all.set(item.interaction_id, item);
  });
  if (isKnown.value) for (const item of fresh) for (const listener of listeners) listener(item);
}

function resolved(item: InboxItem): void {
  const { interaction_id: id } = item;
  if (!waiting.value.has(id)) return;
  change((items) => void items.set(id, item));
  // What came of my own answer is known better from its own answer; who was quicker, only from here.
  const fate = fates.value.get(id)?.type;
  if (fate !== 'sending' && fate !== 'accepted')
    setFate(
      id,
      item.state === 'answered'
        ? { type: 'answered', by: item.answer?.actor?.name ?? 'somebody' }
        : { type: 'gone', why: GONE[item.state] ?? item.state },
    );
  leave(id);
}

const GONE: Readonly<Record<string, string>> = {
  auto_decided: 'its time was over, and the policy decided',
  canceled: 'the run was canceled',
  abandoned: 'the run has ended',
};

export async function answer(
  { run_id: runId, interaction_id: id }: Pick<InboxItem, 'run_id' | 'interaction_id'>,
  given: Pick<Reply, 'response' | 'finish' | 'review'>,
  said = '',
): Promise<boolean> {
  if (fates.value.get(id)?.type === 'sending') return false;
  setFate(id, { type: 'sending' });
  try {
    await client.reply(
      runId,
      { interaction_id: id, idempotency_key: keyOf(id, given), ...given },
      { signal: AbortSignal.timeout(GIVE_UP_MS) },
    );
    setFate(id, { type: 'accepted', said, decision: decisionOf(given.response) });
    drop(id);
    return true;
  } catch (error) {
    setFate(id, fateOf(error, id));
    return false;
  } finally {
    // That it does not wait any more may be told, or be missed while the connection is lost.
    if (!isUndecided(id)) leave(id);
  }
}

const TOO_LATE: ReadonlySet<string> = new Set([
  'RUN_NOT_WAITING',
  'INTERACTION_STALE',
  'REPLY_CONFLICT',
  'RUN_ENDED',
  'INTERACTION_NOT_FOUND',
  'RUN_NOT_FOUND',
]);

const keys = new Map<string, string>();

function decisionOf(response: Json | undefined): string | null {
  const decision = asObject(response)?.['decision'];
  return typeof decision === 'string' ? decision : null;
}

// The same answer, tried again, is the same.
function keyOf(id: string, { response, finish }: Pick<Reply, 'response' | 'finish'>): string {
  const name = `${id} ${JSON.stringify({ response, finish })}`;
  const key = keys.get(name) ?? `console-${Math.random().toString(36).slice(2)}${Date.now().toString(36)}`;
  keys.set(name, key);
  return key;
}

// Who was quicker may have been told before; else it is told in a moment.
function fateOf(error: unknown, id: string): Fate {
  if (error instanceof ParleyError && error.passing) return { type: 'unsent' };
  if (!(error instanceof ParleyError && TOO_LATE.has(error.code))) return { type: 'refused', why: messageOf(error) };
  const by = waiting.value.get(id)?.answer?.actor?.name;
  return by === undefined ? { type: 'gone', why: error.message } : { type: 'answered', by };
}

// What could not be sent while the server was away can be now.
connection.subscribe(({ state }) => {
  if (state !== 'open') return;
  for (const [id, { type }] of fates.peek()) if (type === 'unsent') setFate(id, null);
});

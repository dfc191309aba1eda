// The questions that wait for the user, kept current, and what happened to the user's answers.
import { computed, signal } from '@preact/signals';
import { t } from '../language/language.js';
import { ParleyError, type InboxChange, type InboxItem, type UncheckedReply } from '../../../src/client/index.js';
import { asObject, type Json } from '../../../src/kernel/json.js';
import { isAway } from './away.js';
import { drop } from './drafts.js';
import { pollInbox } from './inbox-polling.js';
import { notifies } from './notify-setting.js';
import { route } from './router.js';
import { client, connection, lost, messageOf, open } from './server.js';

// What happened to an answer. Answers of other people are also shown briefly.
export type Fate =
  | { readonly type: 'sending' }
  // `decision` of an approval, or `finish`.
  | { readonly type: 'accepted'; readonly answer: string; readonly decision: string | null }
  | { readonly type: 'answered'; readonly by: string }
  | { readonly type: 'gone'; readonly why: string }
  // The server was unreachable, or its response was lost.
  | { readonly type: 'unsent' }
  | { readonly type: 'refused'; readonly why: string };

const waiting = signal<ReadonlyMap<string, InboxItem>>(new Map());
export const fates = signal<ReadonlyMap<string, Fate>>(new Map());
// Whether the list is complete.
export const isKnown = signal(false);

export const inbox = computed(() =>
  [...waiting.value.values()].toSorted((a, b) => a.asked_at.localeCompare(b.asked_at)),
);
// Excludes questions that this page has answered.
export const count = computed(
  () =>
    inbox.value.filter(
      ({ interaction_id: id, state }) => state === 'pending' && fates.value.get(id)?.type !== 'accepted',
    ).length,
);

const LINGER_MS = 6000;
// A browser whose connections are all in use sends nothing and reports no error.
const GIVE_UP_MS = 30_000;
const listeners = new Set<(item: InboxItem) => void>();

// Calls the listener for questions that arrive while the page is open.
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

// Cards are not removed while the pointer is over the list, so nothing moves under it.
const leaving = new Set<string>();
let isHeld = false;

function leave(id: string): void {
  setTimeout(() => {
    leaving.add(id);
    // Without open questions there is nothing to click by mistake.
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

// Nothing was answered here, or without success: the card is removed as soon as the question no longer waits. Other
// cards stay for a moment, so that their outcome can be read.
function isUndecided(id: string): boolean {
  const fate = fates.value.get(id);
  return fate === undefined || fate.type === 'refused' || fate.type === 'unsent';
}

// Only the inbox itself holds a connection, because a browser has six for all its windows. Other pages poll for the
// number of waiting questions, hidden pages rarely.
type Mode = 'stream' | 'poll' | 'poll-rarely';
const mode = computed<Mode>(() =>
  route.value.page === 'inbox' && (!isAway.value || notifies.value)
    ? 'stream'
    : isAway.value && !notifies.value
      ? 'poll-rarely'
      : 'poll',
);

// Runs until another mode applies.
export async function watchInbox(): Promise<void> {
  const { value } = mode;
  const stop = new AbortController();
  const stopWatching = mode.subscribe((next) => next !== value && stop.abort());
  try {
    await follow(
      value === 'stream'
        ? client.inboxChanges({ signal: stop.signal, onReconnect: lost, onOpen: open })
        : pollInbox(stop.signal, value === 'poll-rarely'),
    );
  } finally {
    stopWatching();
  }
}

async function follow(
  changes: AsyncIterable<InboxChange | { readonly type: 'all'; readonly items: readonly InboxItem[] }>,
): Promise<void> {
  // The list that the server sends after each reconnect. Questions that are missing from it no longer wait.
  let received: Map<string, InboxItem> | null = null;
  for await (const event of changes) {
    open();
    if (event.type === 'reset') received = new Map();
    else if (event.type === 'ready') {
      if (received) replaceAll(received);
      received = null;
    } else if (event.type === 'all') replaceAll(new Map(event.items.map((item) => [item.interaction_id, item])));
    else if (event.type === 'pending') {
      if (received) received.set(event.item.interaction_id, event.item);
      else addItems([event.item]);
    } else resolveItem(event.item);
  }
}

function replaceAll(items: ReadonlyMap<string, InboxItem>): void {
  for (const id of [...waiting.value.keys()].filter((each) => !items.has(each) && isUndecided(each))) {
    // Nothing moves under the pointer.
    if (!isHeld) forget(id);
    else {
      setFate(id, { type: 'gone', why: t.goneBecause.notWaiting });
      leave(id);
    }
  }
  addItems([...items.values()]);
  isKnown.value = true;
}

function addItems(items: readonly InboxItem[]): void {
  const fresh = items.filter(({ interaction_id: id }) => !waiting.value.has(id));
  change((all) => {
    for (const item of items) all.set(item.interaction_id, item);
  });
  if (isKnown.value) for (const item of fresh) for (const listener of listeners) listener(item);
}

function resolveItem(item: InboxItem): void {
  const { interaction_id: id } = item;
  if (!waiting.value.has(id)) return;
  change((items) => void items.set(id, item));
  // The response to the user's own answer says more. Only this event says who answered first.
  const fate = fates.value.get(id)?.type;
  if (fate !== 'sending' && fate !== 'accepted')
    setFate(
      id,
      item.state === 'answered'
        ? { type: 'answered', by: item.answer?.actor?.name ?? t.someone }
        : { type: 'gone', why: GONE[item.state] ?? item.state },
    );
  leave(id);
}

const GONE: Readonly<Record<string, string>> = t.goneBecause;

export async function answer(
  { run_id: runId, interaction_id: id }: Pick<InboxItem, 'run_id' | 'interaction_id'>,
  input: Pick<UncheckedReply, 'response' | 'finish' | 'review'>,
  label = '',
): Promise<boolean> {
  if (fates.value.get(id)?.type === 'sending') return false;
  setFate(id, { type: 'sending' });
  try {
    await client.reply(
      runId,
      { interaction_id: id, idempotency_key: keyOf(id, input), ...input },
      { signal: AbortSignal.timeout(GIVE_UP_MS) },
    );
    setFate(id, { type: 'accepted', answer: label, decision: input.finish ? 'finish' : decisionOf(input.response) });
    drop(id);
    return true;
  } catch (error) {
    setFate(id, fateOf(error, id));
    return false;
  } finally {
    // The event that the question is resolved may be missed while the connection is lost.
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

// The same answer has the same key, so sending it again applies it once.
function keyOf(id: string, { response, finish }: Pick<UncheckedReply, 'response' | 'finish'>): string {
  const name = `${id} ${JSON.stringify({ response, finish })}`;
  const key = keys.get(name) ?? `console-${Math.random().toString(36).slice(2)}${Date.now().toString(36)}`;
  keys.set(name, key);
  return key;
}

// Who answered first may be known already. Otherwise an event will follow.
function fateOf(error: unknown, id: string): Fate {
  if (error instanceof ParleyError && error.passing) return { type: 'unsent' };
  if (!(error instanceof ParleyError && TOO_LATE.has(error.code))) return { type: 'refused', why: messageOf(error) };
  const by = waiting.value.get(id)?.answer?.actor?.name;
  return by === undefined ? { type: 'gone', why: error.message } : { type: 'answered', by };
}

// Unsent answers can be sent again once the server is back.
connection.subscribe(({ state }) => {
  if (state !== 'open') return;
  for (const [id, { type }] of fates.peek()) if (type === 'unsent') setFate(id, null);
});

// What waits for me, oldest first. Two keys answer: j and k choose a question, then the key that stands on the answer.
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { Link } from '../parts/link.js';
import { Boundary } from '../parts/boundary.js';
import { QuestionCard } from '../parts/question-card.js';
import { inbox, isKnown } from '../state/inbox.js';
import { useAnswerKeys } from '../state/keys.js';
import { mayOperate } from '../state/server.js';

export function InboxPage(): JSX.Element {
  const items = inbox.value;
  const [active, setActive] = useState<string | null>(null);
  const at = Math.max(0, items.findIndex(({ interaction_id: id }) => id === active));
  useEffect(() => {
    if (items.length > 0 && !items.some(({ interaction_id: id }) => id === active)) setActive(items[0]?.interaction_id ?? null);
  }, [items, active]);
  useAnswerKeys({
    // With the focus: Enter must not answer another than the one that is marked.
    move: (by) => cardOf(items[Math.min(Math.max(at + by, 0), items.length - 1)]?.interaction_id)?.focus(),
    card: () => cardOf(active),
  });
  if (!isKnown.value) return <p class="empty dim" role="status">Looking for what waits…</p>;
  return (
    <>
      <h1>{items.length === 0 ? 'Nothing waits for you' : 'Waiting for you'}</h1>
      {items.length === 0
        ? <div class="empty"><p>No agent needs you now. When one does, it is here.</p><p>{mayOperate() ? <><Link to="/new">Start a run</Link>, or look</> : 'Look'} at <Link to="/runs">the runs that are there</Link>.</p></div>
        : <p class="hint dim"><kbd>j</kbd> <kbd>k</kbd> choose, <kbd>1</kbd>–<kbd>9</kbd> answer, <kbd>y</kbd> <kbd>n</kbd> decide, <kbd>r</kbd> write, <kbd>o</kbd> open</p>}
      <div class="cards">
        {items.map((item) => (
          <Boundary key={item.interaction_id} name="This question">
            <QuestionCard item={item} isActive={item.interaction_id === active} onActivate={() => setActive(item.interaction_id)} />
          </Boundary>
        ))}
      </div>
    </>
  );
}

function cardOf(id: string | null | undefined): HTMLElement | null {
  return id == null ? null : document.querySelector<HTMLElement>(`[data-interaction="${CSS.escape(id)}"]`);
}

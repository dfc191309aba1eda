// What waits for me, oldest first. Two keys answer: j and k choose a question, then the key that stands on the answer.
import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { InboxItem } from '../../../src/client/index.js';
import { Link } from '../parts/link.js';
import { Boundary } from '../parts/boundary.js';
import { WholeQuestion } from '../parts/whole-question.js';
import { hold, inbox, isKnown } from '../state/inbox.js';
import { useAnswerKeys } from '../state/keys.js';
import { mayOperate } from '../state/server.js';

// More are drawn when they are wanted: somebody who has thousands sees the oldest at once.
const PAGE = 100;

export function InboxPage(): JSX.Element {
  const all = inbox.value;
  const [limit, setLimit] = useState(PAGE);
  const items = all.slice(0, limit);
  const { active, mark, move } = useMark(items);
  useAnswerKeys({ move, card: () => cardOf(active) });
  useEffect(() => () => hold(false), []);
  if (!isKnown.value)
    return (
      <p class="empty dim" role="status">
        Looking for what waits…
      </p>
    );
  return (
    <>
      <h1 tabIndex={-1}>{all.length === 0 ? 'Nothing waits for you' : 'Waiting for you'}</h1>
      {all.length === 0 ? (
        <div class="empty">
          <p>No agent needs you now. When one does, it is here.</p>
          <p>
            {mayOperate() ? (
              <>
                <Link to="/new">Start a run</Link>, or look
              </>
            ) : (
              'Look'
            )}{' '}
            at <Link to="/runs">the runs that are there</Link>.
          </p>
        </div>
      ) : (
        <p class="hint dim">
          <kbd>j</kbd> <kbd>k</kbd> choose, <kbd>1</kbd>–<kbd>9</kbd> answer,{' '}
          <>
            <kbd>y</kbd> <kbd>s</kbd> <kbd>n</kbd> <kbd>c</kbd> decide,
          </>{' '}
          <kbd>r</kbd> write, <kbd>f</kbd> finish, <kbd>o</kbd> open
        </p>
      )}
      <div
        class="cards"
        onPointerEnter={(event) => hold(event.pointerType === 'mouse')}
        onPointerLeave={() => hold(false)}
      >
        {items.map((item) => (
          <Boundary key={item.interaction_id} name="This question">
            <WholeQuestion
              item={item}
              isActive={item.interaction_id === active}
              onActivate={() => mark(item.interaction_id)}
            />
          </Boundary>
        ))}
      </div>
      {all.length > limit && (
        <p class="more">
          <button type="button" onClick={() => setLimit(limit + PAGE)}>
            Show more of the {all.length} that wait
          </button>
        </p>
      )}
    </>
  );
}

// Which card the keys go to. It never goes to another by itself: a key that is just being pressed was meant for the one
// that was there.
function useMark(items: readonly InboxItem[]): {
  readonly active: string | null;
  readonly mark: (id: string) => void;
  readonly move: (by: number) => void;
} {
  const [active, setActive] = useState<string | null>(null);
  // Where it stood.
  const place = useRef(0);
  const wasEmpty = useRef(true);
  const at = items.findIndex(({ interaction_id: id }) => id === active);
  if (at >= 0) place.current = at;
  useEffect(() => {
    if (at < 0 && wasEmpty.current && items.length > 0) setActive(items[0]?.interaction_id ?? null);
    else if (at < 0 && active !== null) {
      setActive(null);
      if (document.activeElement === null || document.activeElement === document.body)
        document.querySelector<HTMLElement>('main h1')?.focus({ preventScroll: true });
    }
    wasEmpty.current = items.length === 0;
  }, [items, active, at]);
  const move = (by: number): void => {
    // The next of one that is gone is the one in its place.
    const to = at >= 0 ? at + by : by > 0 ? place.current : place.current - 1;
    // With the focus: Enter must not answer another than the one that is marked.
    cardOf(items[Math.min(Math.max(to, 0), items.length - 1)]?.interaction_id)?.focus();
  };
  return { active, mark: setActive, move };
}

function cardOf(id: string | null | undefined): HTMLElement | null {
  return id == null ? null : document.querySelector<HTMLElement>(`[data-interaction="${CSS.escape(id)}"]`);
}

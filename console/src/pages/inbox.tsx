// The questions that wait for the user, oldest first. Two keys answer one: j or k selects it, then the key shown on the
// answer.
import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { t } from '../language/language.js';
import type { InboxItem } from '../../../src/client/index.js';
import { Link } from '../parts/link.js';
import { Boundary } from '../parts/boundary.js';
import { WholeQuestion } from '../parts/whole-question.js';
import { hold, inbox, isKnown } from '../state/inbox.js';
import { useAnswerKeys } from '../state/keys.js';
import { mayOperate } from '../state/server.js';

// Draws more on request, so that the oldest of thousands of questions appear at once.
const PAGE = 100;

export function InboxPage(): JSX.Element {
  const all = inbox.value;
  const [limit, setLimit] = useState(PAGE);
  const items = all.slice(0, limit);
  const { active, select, move } = useSelection(items);
  useAnswerKeys({ move, card: () => cardOf(active) });
  useEffect(() => () => hold(false), []);
  if (!isKnown.value)
    return (
      <p class="empty dim" role="status">
        {t.inbox.loading}
      </p>
    );
  return (
    <>
      <h1 tabIndex={-1}>{all.length === 0 ? t.inbox.caughtUp : t.inbox.title}</h1>
      {all.length === 0 ? (
        <div class="empty">
          <p>{t.inbox.caughtUpHelp}</p>
          <p>
            {mayOperate() ? (
              t.inbox.startOrSee(<Link to="/new">{t.inbox.startRun}</Link>, <Link to="/runs">{t.inbox.orSeeRuns}</Link>)
            ) : (
              <Link to="/runs">{t.inbox.seeRuns}</Link>
            )}
          </p>
        </div>
      ) : (
        <p class="hint dim">
          {t.inbox.keys((name) => (
            <kbd>{name}</kbd>
          ))}
        </p>
      )}
      <div
        class="cards"
        onPointerEnter={(event) => hold(event.pointerType === 'mouse')}
        onPointerLeave={() => hold(false)}
      >
        {items.map((item) => (
          <Boundary key={item.interaction_id} name={t.inbox.thisQuestion}>
            <WholeQuestion
              item={item}
              isActive={item.interaction_id === active}
              onActivate={() => select(item.interaction_id)}
            />
          </Boundary>
        ))}
      </div>
      {all.length > limit && (
        <p class="more">
          <button type="button" onClick={() => setLimit(limit + PAGE)}>
            {t.inbox.showMore(all.length)}
          </button>
        </p>
      )}
    </>
  );
}

// The card that keys apply to. The selection never moves by itself: a key pressed at that moment was meant for the
// previous card.
function useSelection(items: readonly InboxItem[]): {
  readonly active: string | null;
  readonly select: (id: string) => void;
  readonly move: (by: number) => void;
} {
  const [active, setActive] = useState<string | null>(null);
  // The last position of the selected card.
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
    // If the selected card was removed, the next one is the card in its place.
    const to = at >= 0 ? at + by : by > 0 ? place.current : place.current - 1;
    // Also moves the focus: Enter must not answer a card that is not selected.
    cardOf(items[Math.min(Math.max(to, 0), items.length - 1)]?.interaction_id)?.focus();
  };
  return { active, select: setActive, move };
}

function cardOf(id: string | null | undefined): HTMLElement | null {
  return id == null ? null : document.querySelector<HTMLElement>(`[data-interaction="${CSS.escape(id)}"]`);
}

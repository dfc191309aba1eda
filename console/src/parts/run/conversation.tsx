// The conversation as a list that draws only the rows on screen. At its end the list follows new rows; elsewhere a
// button shows how many there are.
import type { JSX } from 'preact';
import { useCallback, useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { t } from '../../language/language.js';
import { query, refine } from '../../state/router.js';
import type { RunFeed } from '../../state/run-feed.js';
import type { Row } from '../../state/run-rows.js';
import { isEnd } from '../../state/run-path.js';
import { useAnswerKeys } from '../../state/keys.js';
import { useVirtual } from '../../state/virtual.js';
import { Boundary } from '../boundary.js';
import { Opened } from './fold.js';
import { QuestionRow } from './question-row.js';
import { RowBody } from './row.js';

const HEIGHTS: Readonly<Partial<Record<Row['type'], number>>> = {
  tool: 45,
  reasoning: 45,
  details: 45,
  files: 45,
  usage: 40,
  attempt: 56,
  question: 200,
  end: 120,
};
const LINE_PX = 24;
const LINE_CHARS = 90;

interface Props {
  readonly feed: RunFeed;
  readonly runId: string;
  // The event whose evidence is open.
  readonly shown: number | null;
}

export function Conversation({ feed, runId, shown }: Props): JSX.Element {
  // A component that reads signals is drawn again only when a signal or a prop changes.
  void feed.version.value;
  const { rows, pending } = feed.model;
  const run = feed.run.value;
  const opened = useMemo(() => new Set<string>(), []);
  const focused = useRef(-1);
  const pendingAt = pending ? rows.lastIndexOf(pending) : -1;
  // Must stay the same function: another one would make the list measure all rows again.
  const keyOf = useCallback((index: number) => rows[index]?.key ?? String(index), [rows]);
  const list = useVirtual({
    count: rows.length,
    keyOf,
    estimate: (index) => heightOf(rows[index]),
    pinned: () => [focused.current, pendingAt].filter((index) => index >= 0),
    startsAtEnd: run !== null && !isEnd(run.status),
  });
  const isCurrent = feed.isCurrent();
  const { isMarked, mark } = useMark(isCurrent, pending?.interactionId ?? null);
  // Keys answer only a question that is visible.
  const isActive = isMarked && list.isAtEnd && shown === null;
  const card = (): HTMLElement | null =>
    pending ? document.querySelector<HTMLElement>(`[data-interaction="${CSS.escape(pending.interactionId)}"]`) : null;
  useAnswerKeys({ card: () => (isActive ? card() : null), move: () => card()?.focus() });
  useKeptFocus(pending?.interactionId ?? null, () => list.box.current);
  useShown(list.toIndex, shown === null ? -1 : rows.findIndex(({ rasp }) => rasp.includes(shown)), () =>
    list.items.map(({ index }) => index),
  );
  const seen = useRef(rows.length);
  const wasCurrent = useRef(false);
  // Rows that were there when the page opened are not new.
  if (list.isAtEnd || !wasCurrent.current) seen.current = rows.length;
  if (isCurrent) wasCurrent.current = true;
  return (
    <section class="conversation" aria-label={t.conversation.label}>
      <Opened.Provider value={opened}>
        <div
          ref={list.box}
          class="scroll"
          role="feed"
          aria-label={t.conversation.events}
          aria-busy={!isCurrent}
          tabIndex={0}
          onFocusIn={(event) => (focused.current = indexAt(event.target))}
          onFocusOut={() => (focused.current = -1)}
        >
          <div class="rows" role="presentation" style={{ height: `${list.height}px` }}>
            {list.items.map(({ index, start, key }) => {
              const row = rows[index];
              return (
                row && (
                  <article
                    key={key}
                    ref={list.measure}
                    data-index={index}
                    class={`row row-${row.type}${shown !== null && row.rasp.includes(shown) ? ' chosen' : ''}`}
                    style={{ transform: `translateY(${start}px)` }}
                    aria-posinset={index + 1}
                    aria-setsize={rows.length}
                    aria-label={t.conversation.rows[row.type]}
                  >
                    <Boundary name={t.conversation.thisEvent}>
                      {row.type === 'question' ? (
                        <QuestionRow
                          runId={runId}
                          pending={run?.interaction ?? null}
                          row={row}
                          rev={row.rev}
                          isCurrent={isCurrent}
                          isActive={isActive}
                          onActivate={mark}
                        />
                      ) : (
                        <MemoizedRow row={row} rev={row.rev} />
                      )}
                    </Boundary>
                    <EvidenceButton rasp={row.rasp} at={row.at} />
                  </article>
                )
              );
            })}
          </div>
          {rows.length === 0 && (
            <p class="empty dim" role="status">
              {t.conversation.empty}
            </p>
          )}
        </div>
      </Opened.Provider>
      {!list.isAtEnd && (
        <button type="button" class="to-end" onClick={list.toEnd}>
          {rows.length > seen.current ? t.conversation.fresh(rows.length - seen.current) : t.conversation.toEnd}
        </button>
      )}
    </section>
  );
}

// Scrolls to the row whose evidence is open, however it was opened.
function useShown(toIndex: (index: number) => void, index: number, drawn: () => readonly number[]): void {
  useEffect(() => {
    const row = document.querySelector<HTMLElement>(`.row[data-index="${index}"]`);
    const box = row?.closest('.scroll');
    if (index < 0) return;
    if (!drawn().includes(index) || !row || !box) return toIndex(index);
    const [a, b] = [row.getBoundingClientRect(), box.getBoundingClientRect()];
    if (a.bottom < b.top || a.top > b.bottom) toIndex(index);
  }, [index]);
}

// Whether keys apply to the pending question. They apply to the question that was there when the page opened, and to
// one that the user selected. They never apply to a question that appears by itself: a key pressed at that moment was
// meant for the previous one.
function useMark(
  isCurrent: boolean,
  pendingId: string | null,
): { readonly isMarked: boolean; readonly mark: () => void } {
  const [marked, setMarked] = useState<string | null>(null);
  const isFirst = useRef(true);
  useEffect(() => {
    if (!isCurrent || !isFirst.current) return;
    isFirst.current = false;
    setMarked(pendingId);
  }, [isCurrent, pendingId]);
  return { isMarked: pendingId !== null && marked === pendingId, mark: () => setMarked(pendingId) };
}

// Drawn again only when the row has changed.
function MemoizedRow({
  row,
  rev,
}: {
  readonly row: Exclude<Row, { type: 'question' }>;
  readonly rev: number;
}): JSX.Element {
  return useMemo(() => <RowBody row={row} rev={rev} />, [row, rev]);
}

function EvidenceButton({ rasp, at }: { readonly rasp: readonly number[]; readonly at: string }): JSX.Element {
  const [first = 1] = rasp;
  const time = new Date(at).toLocaleTimeString();
  const span = rasp.length > 1 ? `${first}–${rasp.at(-1)}` : String(first);
  return (
    <button
      type="button"
      class="quiet proof"
      title={t.conversation.evidence(time, span)}
      onClick={() => refine({ evidence: String(first) }, { opens: !query.value.has('evidence') })}
    >
      <span class="time" aria-hidden="true">
        {time}
      </span>{' '}
      <span class="unseen">{t.conversation.evidenceFor}</span>#{first}
    </button>
  );
}

function indexAt(target: EventTarget | null): number {
  const row = target instanceof Element ? target.closest<HTMLElement>('[data-index]') : null;
  return row ? Number(row.dataset['index']) : -1;
}

function heightOf(row: Row | undefined): number {
  if (!row) return LINE_PX;
  if (row.type === 'message' || row.type === 'user')
    return 36 + LINE_PX * Math.min(40, Math.ceil(row.text.length / LINE_CHARS));
  return row.type === 'plan' ? 60 + LINE_PX * row.items.length : (HEIGHTS[row.type] ?? 45);
}

// An answered card disappears with its focused button: move the focus to the list.
function useKeptFocus(pendingId: string | null, box: () => HTMLElement | null): void {
  const before = useRef(pendingId);
  useEffect(() => {
    if (
      before.current !== null &&
      before.current !== pendingId &&
      (document.activeElement === null || document.activeElement === document.body)
    )
      box()?.focus({ preventScroll: true });
    before.current = pendingId;
  }, [pendingId]);
}

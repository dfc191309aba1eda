// The evidence for one event: its envelope, the confidence of the parser, and its exact bytes in the log, highlighted
// in their context.
import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { t } from '../../language/language.js';
import { loadEvidence, type Evidence, type LogPart } from '../../state/evidence.js';
import { formatBytes, formatCount, formatTime } from '../../state/format.js';
import { closeOpened, refine } from '../../state/router.js';
import { messageOf } from '../../state/server.js';
import { Plain } from './fold.js';

interface PanelProps {
  readonly runId: string;
  readonly seq: number;
  // The events of the row from which it was opened.
  readonly row: readonly number[];
  // The last event of the run.
  readonly last: number;
}

function show(seq: number): void {
  refine({ evidence: String(seq) });
}

type Loaded =
  | { readonly type: 'loading' }
  | { readonly type: 'loaded'; readonly evidence: Evidence }
  | { readonly type: 'failed'; readonly why: string };

export function EvidencePanel({ runId, seq, row, last }: PanelProps): JSX.Element {
  const [loaded, setLoaded] = useState<Loaded>({ type: 'loading' });
  const panel = useRef<HTMLElement>(null);
  const opener = useRef(document.activeElement);
  const close = (): void => {
    closeOpened({ evidence: null });
    if (opener.current instanceof HTMLElement && opener.current.isConnected)
      opener.current.focus({ preventScroll: true });
    else document.querySelector<HTMLElement>('.conversation .scroll')?.focus({ preventScroll: true });
  };
  useEffect(() => panel.current?.focus(), []);
  useEffect(() => {
    let isWanted = true;
    setLoaded((before) => (before.type === 'loaded' ? before : { type: 'loading' }));
    loadEvidence(runId, seq).then(
      (evidence) =>
        isWanted &&
        setLoaded(evidence ? { type: 'loaded', evidence } : { type: 'failed', why: t.evidence.missing(seq) }),
      (error: unknown) => isWanted && setLoaded({ type: 'failed', why: messageOf(error) }),
    );
    return () => {
      isWanted = false;
    };
  }, [runId, seq]);
  const at = row.indexOf(seq);
  return (
    <aside
      ref={panel}
      class="evidence"
      tabIndex={-1}
      aria-label={t.evidence.label(seq)}
      data-seq={loaded.type === 'loaded' ? loaded.evidence.event.seq : ''}
      onKeyDown={(event) => event.key === 'Escape' && close()}
    >
      <header>
        <h2>{t.evidence.title(formatCount(seq), formatCount(last))}</h2>
        <span class="grow" />
        <button type="button" disabled={seq <= 1} onClick={() => show(seq - 1)}>
          {t.evidence.previous}
        </button>
        <button type="button" disabled={seq >= last} onClick={() => show(seq + 1)}>
          {t.evidence.next}
        </button>
        <button type="button" onClick={close}>
          {t.evidence.close}
        </button>
      </header>
      {row.length > 1 && at >= 0 && (
        <p class="of-row">
          <span class="dim">{t.evidence.inRow(at + 1, formatCount(row.length))}</span>
          <button type="button" class="quiet" disabled={at === 0} onClick={() => show(row[at - 1] ?? seq)}>
            {t.evidence.previousInRow}
          </button>
          <button type="button" class="quiet" disabled={at === row.length - 1} onClick={() => show(row[at + 1] ?? seq)}>
            {t.evidence.nextInRow}
          </button>
        </p>
      )}
      {loaded.type === 'loading' && (
        <p class="dim" role="status">
          {t.loading}
        </p>
      )}
      {loaded.type === 'failed' && (
        <p class="bad" role="alert">
          {loaded.why}
        </p>
      )}
      {loaded.type === 'loaded' && (
        <div class={loaded.evidence.event.seq === seq ? '' : 'stale'} aria-busy={loaded.evidence.event.seq !== seq}>
          <EventEvidence runId={runId} evidence={loaded.evidence} />
        </div>
      )}
    </aside>
  );
}

function EventEvidence({
  runId,
  evidence: { event, diagnostics, bytes },
}: {
  readonly runId: string;
  readonly evidence: Evidence;
}): JSX.Element {
  const { source } = event;
  return (
    <>
      <dl class="action">
        <div>
          <dt>{t.evidence.type}</dt>
          <dd>
            <code>{event.event.type}</code>
          </dd>
        </div>
        <div>
          <dt>{t.evidence.time}</dt>
          <dd>{t.evidence.timeAndTurn(formatTime(event.ts), event.attempt_number)}</dd>
        </div>
        <div>
          <dt>{t.evidence.parser}</dt>
          <dd>
            <code>{source.parser}</code>
          </dd>
        </div>
        <div>
          <dt>{t.evidence.confidence}</dt>
          <dd>
            <meter min={0} max={1} value={source.confidence} aria-label={t.evidence.confidence} /> {source.confidence}
          </dd>
        </div>
      </dl>
      {diagnostics.length > 0 && (
        <>
          <h3>{t.evidence.diagnostics}</h3>
          <ul class="diagnostics">
            {diagnostics.map((each) => (
              <li key={each.seq}>
                <code>{String(each.data['code'] ?? each.event.type)}</code> {String(each.data['message'] ?? '')}
              </li>
            ))}
          </ul>
        </>
      )}
      <h3>{t.evidence.inLog}</h3>
      {event.raw_ref === null || bytes === null ? (
        <p class="dim">{t.evidence.ownEvent}</p>
      ) : (
        <Bytes runId={runId} ref_={event.raw_ref} part={bytes} />
      )}
      <h3>{t.evidence.envelope}</h3>
      <Plain text={JSON.stringify(event, null, 2)} label={t.evidence.envelope} />
    </>
  );
}

function Bytes({
  runId,
  ref_: { attempt_number: attempt, stream, byte_from: from, byte_to: to },
  part,
}: {
  readonly runId: string;
  readonly ref_: NonNullable<Evidence['event']['raw_ref']>;
  readonly part: LogPart;
}): JSX.Element {
  const mark = useRef<HTMLElement>(null);
  useEffect(() => {
    const box = mark.current?.parentElement;
    if (box && mark.current) box.scrollTop = mark.current.offsetTop - 60;
  }, [part]);
  const href = `/v1/runs/${encodeURIComponent(runId)}/logs?attempt=${attempt}&stream=${stream}`;
  return (
    <>
      <p class="small dim">
        {t.evidence.bytes(formatCount(from), formatCount(to), formatBytes(to - from), stream, attempt)}{' '}
        {t.evidence.download(
          <a href={`${href}&byte_from=${from}&byte_to=${to}`} download>
            {t.evidence.theseBytes}
          </a>,
          <a href={href} download>
            {t.evidence.wholeLog}
          </a>,
        )}
      </p>
      <pre class="plain bytes" tabIndex={0} role="region" aria-label={t.evidence.bytesInLog}>
        <span class="around">{part.before}</span>
        <mark ref={mark}>{part.exact}</mark>
        <span class="around">{part.after}</span>
      </pre>
      {part.left > 0 && <p class="dim small">{t.evidence.notShown(formatBytes(part.left))}</p>}
    </>
  );
}

// The evidence of one event: its envelope, how sure the parser was, and the exact bytes of the log, marked among those
// around them.
import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { loadEvidence, type Evidence, type LogPart } from '../../state/evidence.js';
import { formatBytes, formatCount, formatTime } from '../../state/format.js';
import { closeOpened, refine } from '../../state/router.js';
import { messageOf } from '../../state/server.js';
import { Plain } from './fold.js';

interface PanelProps {
  readonly runId: string;
  readonly seq: number;
  // Those of the row that it was opened from.
  readonly row: readonly number[];
  // The last of the run.
  readonly last: number;
}

function show(seq: number): void {
  refine({ evidence: String(seq) });
}

type Found =
  | { readonly type: 'looking' }
  | { readonly type: 'found'; readonly evidence: Evidence }
  | { readonly type: 'failed'; readonly why: string };

export function EvidencePanel({ runId, seq, row, last }: PanelProps): JSX.Element {
  const [found, setFound] = useState<Found>({ type: 'looking' });
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
    setFound((before) => (before.type === 'found' ? before : { type: 'looking' }));
    loadEvidence(runId, seq).then(
      (evidence) =>
        isWanted &&
        setFound(evidence ? { type: 'found', evidence } : { type: 'failed', why: `The run has no event ${seq}.` }),
      (error: unknown) => isWanted && setFound({ type: 'failed', why: messageOf(error) }),
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
      aria-label={`Evidence of event ${seq}`}
      data-seq={found.type === 'found' ? found.evidence.event.seq : ''}
      onKeyDown={(event) => event.key === 'Escape' && close()}
    >
      <header>
        <h2>
          Event {formatCount(seq)} of {formatCount(last)}
        </h2>
        <span class="grow" />
        <button type="button" disabled={seq <= 1} onClick={() => show(seq - 1)}>
          Previous
        </button>
        <button type="button" disabled={seq >= last} onClick={() => show(seq + 1)}>
          Next
        </button>
        <button type="button" onClick={close}>
          Close
        </button>
      </header>
      {row.length > 1 && at >= 0 && (
        <p class="of-row">
          <span class="dim">
            {at + 1} of the {formatCount(row.length)} events of this row
          </span>
          <button type="button" class="quiet" disabled={at === 0} onClick={() => show(row[at - 1] ?? seq)}>
            ‹ in the row
          </button>
          <button type="button" class="quiet" disabled={at === row.length - 1} onClick={() => show(row[at + 1] ?? seq)}>
            in the row ›
          </button>
        </p>
      )}
      {found.type === 'looking' && (
        <p class="dim" role="status">
          Looking…
        </p>
      )}
      {found.type === 'failed' && (
        <p class="bad" role="alert">
          {found.why}
        </p>
      )}
      {found.type === 'found' && (
        <div class={found.evidence.event.seq === seq ? '' : 'stale'} aria-busy={found.evidence.event.seq !== seq}>
          <Shown runId={runId} evidence={found.evidence} />
        </div>
      )}
    </aside>
  );
}

function Shown({
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
          <dt>Type</dt>
          <dd>
            <code>{event.event.type}</code>
          </dd>
        </div>
        <div>
          <dt>When</dt>
          <dd>
            {formatTime(event.ts)}, attempt {event.attempt_number}
          </dd>
        </div>
        <div>
          <dt>Read by</dt>
          <dd>
            <code>{source.parser}</code>
          </dd>
        </div>
        <div>
          <dt>Confidence</dt>
          <dd>
            <meter min={0} max={1} value={source.confidence} aria-label="Confidence" /> {source.confidence}
          </dd>
        </div>
      </dl>
      {diagnostics.length > 0 && (
        <>
          <h3>Diagnostics about these bytes</h3>
          <ul class="diagnostics">
            {diagnostics.map((each) => (
              <li key={each.seq}>
                <code>{String(each.data['code'] ?? each.event.type)}</code> {String(each.data['message'] ?? '')}
              </li>
            ))}
          </ul>
        </>
      )}
      <h3>In the log</h3>
      {event.raw_ref === null || bytes === null ? (
        <p class="dim">It is an event of Parley's own: the engine printed nothing for it.</p>
      ) : (
        <Bytes runId={runId} ref_={event.raw_ref} part={bytes} />
      )}
      <h3>Envelope</h3>
      <Plain text={JSON.stringify(event, null, 2)} label="Envelope" />
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
        Bytes {formatCount(from)} to {formatCount(to)} ({formatBytes(to - from)}) of {stream}, attempt {attempt}.{' '}
        <a href={`${href}&byte_from=${from}&byte_to=${to}`} download>
          These bytes
        </a>
        ,{' '}
        <a href={href} download>
          the whole log
        </a>
        .
      </p>
      <pre class="plain bytes" tabIndex={0} role="region" aria-label="The bytes in the log">
        <span class="around">{part.before}</span>
        <mark ref={mark}>{part.exact}</mark>
        <span class="around">{part.after}</span>
      </pre>
      {part.left > 0 && <p class="dim small">{formatBytes(part.left)} more are not shown.</p>}
    </>
  );
}

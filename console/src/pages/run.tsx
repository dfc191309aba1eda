// The page of a run: its prompt, the live conversation, its path through the states, and the evidence for every event.
import type { JSX } from 'preact';
import { useEffect, useMemo, useState } from 'preact/hooks';
import { t } from '../language/language.js';
import { Link } from '../parts/link.js';
import { StateChart } from '../parts/run/chart.js';
import { Conversation } from '../parts/run/conversation.js';
import { EvidencePanel } from '../parts/run/evidence.js';
import { RunHeader } from '../parts/run/header.js';
import { Proofs } from '../parts/run/proofs.js';
import { Timeline } from '../parts/run/timeline.js';
import { query } from '../state/router.js';
import { followRun } from '../state/run-feed.js';
import { runPrompt } from '../state/title.js';
import './run.css';

export function RunPage({ id }: { readonly id: string }): JSX.Element {
  const feed = useMemo(() => followRun(id), [id]);
  const [isSideOpen, setSideOpen] = useState(false);
  useEffect(() => feed.stop, [feed]);
  const prompt = feed.run.value?.prompt ?? null;
  useEffect(() => {
    runPrompt.value = prompt;
    return () => void (runPrompt.value = null);
  }, [prompt]);
  void feed.version.value;
  const run = feed.run.value;
  const shown = seqOf(query.value.get('evidence'));
  if (feed.failure.value !== null)
    return (
      <div class="empty">
        <h1>{run === null ? t.run.notFound : t.run.broken}</h1>
        <p>
          {feed.failure.value} <Link to="/runs">{t.frame.toRuns}</Link>
        </p>
      </div>
    );
  if (run === null)
    return (
      <p class="empty dim" role="status">
        {t.run.loading}
      </p>
    );
  const status = feed.isCurrent() ? feed.model.path.state : run.status;
  return (
    <div class="run wide">
      <RunHeader feed={feed} run={run} />
      <button
        type="button"
        class="side-toggle"
        aria-expanded={isSideOpen}
        aria-controls="run-side"
        onClick={() => setSideOpen(!isSideOpen)}
      >
        {t.run.side}
      </button>
      <div id="run-side" class={`run-side${isSideOpen ? ' open' : ''}`}>
        <section aria-labelledby="side-state">
          <h2 id="side-state">{t.run.state}</h2>
          <StateChart feed={feed} status={status} />
        </section>
        <section aria-labelledby="side-time">
          <h2 id="side-time">{t.run.time}</h2>
          <Timeline feed={feed} />
        </section>
        <section aria-labelledby="side-proofs">
          <h2 id="side-proofs">{t.run.evidence}</h2>
          <Proofs runId={id} status={status} />
        </section>
      </div>
      <Conversation feed={feed} runId={id} shown={shown} />
      {shown !== null && (
        <EvidencePanel
          runId={id}
          seq={shown}
          row={feed.model.rows.find(({ rasp }) => rasp.includes(shown))?.rasp ?? []}
          last={Math.max(run.rasp_seq, feed.model.rows.at(-1)?.rasp.at(-1) ?? 0)}
        />
      )}
    </div>
  );
}

function seqOf(text: string | null): number | null {
  return text !== null && /^[1-9]\d{0,15}$/.test(text) ? Number(text) : null;
}

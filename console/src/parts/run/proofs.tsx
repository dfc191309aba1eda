// The record of a run: checks that nothing recorded was altered, and downloads its files.
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { t } from '../../language/language.js';
import type { ParleyClient } from '../../../../src/client/index.js';
import { formatBytes } from '../../state/format.js';
import { isEnd, type State } from '../../state/run-path.js';
import { client, messageOf } from '../../state/server.js';
import { Fold } from './fold.js';

type Verification = Awaited<ReturnType<ParleyClient['verify']>>;
type Check =
  | { readonly type: 'none' }
  // `before`: how many other checks run first.
  | { readonly type: 'checking'; readonly before: number }
  | { readonly type: 'checked'; readonly report: Verification }
  | { readonly type: 'failed'; readonly why: string };

interface Listed {
  readonly files: readonly { readonly path: string; readonly bytes: number }[];
  readonly truncated: boolean;
}

export function Proofs({ runId, status }: { readonly runId: string; readonly status: State }): JSX.Element {
  const [check, setCheck] = useState<Check>({ type: 'none' });
  // A report applies only to the record at that time.
  useEffect(() => setCheck({ type: 'none' }), [status]);
  const showChecking = (before: number): void => setCheck({ type: 'checking', before });
  const verify = (): void => {
    showChecking(0);
    client.verify(runId, { onWaiting: showChecking, onProgress: () => showChecking(0) }).then(
      (report) => setCheck({ type: 'checked', report }),
      (error: unknown) => setCheck({ type: 'failed', why: messageOf(error) }),
    );
  };
  return (
    <div class="proofs">
      <p class="options">
        <button type="button" disabled={check.type === 'checking'} onClick={verify}>
          {check.type !== 'checking'
            ? t.record.check
            : check.before === 0
              ? t.record.checking
              : t.record.waiting(check.before)}
        </button>
        <a class="button" href={`/v1/runs/${encodeURIComponent(runId)}/archive`} download>
          {t.record.download}
        </a>
      </p>
      <div role="status" aria-live="polite">
        {check.type === 'failed' && <p class="bad">{check.why}</p>}
        {check.type === 'checked' && (
          <>
            <p class={check.report.ok ? 'good' : 'bad'}>
              {!check.report.ok ? t.record.altered : isEnd(status) ? t.record.intact : t.record.intactSoFar}
            </p>
            <ul class="checks">
              {check.report.checks.map(({ name, ok, finding }) => (
                <li key={name}>
                  <span class={ok ? 'good' : 'bad'} aria-hidden="true">
                    {ok ? '✓' : '✗'}
                  </span>
                  <span class="unseen">{ok ? t.record.passed : t.record.failed}</span> {name}{' '}
                  <span class="dim small">{finding}</span>
                </li>
              ))}
            </ul>
          </>
        )}
      </div>
      <Fold id="files" summary={t.record.files}>
        {() => <Files key={status} runId={runId} />}
      </Fold>
    </div>
  );
}

function Files({ runId }: { readonly runId: string }): JSX.Element {
  const [listed, setListed] = useState<Listed | string | null>(null);
  const path = `/v1/runs/${encodeURIComponent(runId)}/files`;
  useEffect(() => {
    client
      .request('GET', path)
      .then(async (response) => setListed((await response.json()) as Listed))
      .catch((error: unknown) => setListed(messageOf(error)));
  }, [path]);
  if (listed === null)
    return (
      <p class="dim" role="status">
        {t.loading}
      </p>
    );
  if (typeof listed === 'string') return <p class="bad">{listed}</p>;
  return (
    <ul class="file-list">
      {listed.files.map((file) => (
        <li key={file.path}>
          <a href={`${path}/content?path=${encodeURIComponent(file.path)}`} download>
            {file.path}
          </a>{' '}
          <span class="dim small">{formatBytes(file.bytes)}</span>
        </li>
      ))}
      {listed.files.length === 0 && <li class="dim">{t.none}</li>}
      {listed.truncated && <li class="dim">{t.record.moreFiles}</li>}
    </ul>
  );
}

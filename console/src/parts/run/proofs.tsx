// The run's own evidence as a whole: is everything as it was written, and its files to take home.
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { ParleyClient } from '../../../../src/client/index.js';
import { formatBytes } from '../../state/format.js';
import { isEnd, type State } from '../../state/run-way.js';
import { client, messageOf } from '../../state/server.js';
import { Fold } from './fold.js';

type Verification = Awaited<ReturnType<ParleyClient['verify']>>;
type Check =
  | { readonly type: 'none' | 'checking' }
  | { readonly type: 'checked'; readonly found: Verification }
  | { readonly type: 'failed'; readonly why: string };

interface Listed {
  readonly files: readonly { readonly path: string; readonly bytes: number }[];
  readonly truncated: boolean;
}

export function Proofs({ runId, status }: { readonly runId: string; readonly status: State }): JSX.Element {
  const [check, setCheck] = useState<Check>({ type: 'none' });
  // What was found holds for what there was then.
  useEffect(() => setCheck({ type: 'none' }), [status]);
  const verify = (): void => {
    setCheck({ type: 'checking' });
    client.verify(runId).then(
      (found) => setCheck({ type: 'checked', found }),
      (error: unknown) => setCheck({ type: 'failed', why: messageOf(error) }),
    );
  };
  return (
    <div class="proofs">
      <p class="options">
        <button type="button" disabled={check.type === 'checking'} onClick={verify}>
          {check.type === 'checking' ? 'Checking…' : 'Check the digests'}
        </button>
        <a class="button" href={`/v1/runs/${encodeURIComponent(runId)}/archive`} download>
          Download its record
        </a>
      </p>
      <div role="status" aria-live="polite">
        {check.type === 'failed' && <p class="bad">{check.why}</p>}
        {check.type === 'checked' && (
          <>
            <p class={check.found.ok ? 'good' : 'bad'}>
              {!check.found.ok
                ? 'Not everything is as it was written.'
                : isEnd(status)
                  ? 'Everything is as it was written.'
                  : 'So far everything is as it was written; the run goes on.'}
            </p>
            <ul class="checks">
              {check.found.checks.map(({ name, ok, finding }) => (
                <li key={name}>
                  <span class={ok ? 'good' : 'bad'} aria-hidden="true">
                    {ok ? '✓' : '✗'}
                  </span>
                  <span class="unseen">{ok ? 'good: ' : 'bad: '}</span> {name} <span class="dim small">{finding}</span>
                </li>
              ))}
            </ul>
          </>
        )}
      </div>
      <Fold id="files" summary="Its record: logs, events, result">
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
      .then(async (answer) => setListed((await answer.json()) as Listed))
      .catch((error: unknown) => setListed(messageOf(error)));
  }, [path]);
  if (listed === null)
    return (
      <p class="dim" role="status">
        Looking…
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
      {listed.files.length === 0 && <li class="dim">None.</li>}
      {listed.truncated && <li class="dim">There are more; the download has all of them.</li>}
    </ul>
  );
}

// The actions of a run that the user may take: finish, cancel, retry, continue, fork. Refusals of the server are shown
// beside them.
import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { t } from '../../language/language.js';
import { ParleyError, type RunView } from '../../../../src/client/index.js';
import { loadEngines } from '../../state/engines.js';
import { answer, fates } from '../../state/inbox.js';
import { RequestKeys } from '../../state/new-run.js';
import { persist } from '../../state/persist.js';
import { go } from '../../state/router.js';
import type { RunFeed } from '../../state/run-feed.js';
import { isEnd, type State } from '../../state/run-path.js';
import { client, mayAnswer, mayOperate, messageOf } from '../../state/server.js';

type Asking = 'none' | 'cancel' | 'continue' | 'fork';

export function Actions({
  feed,
  run,
  status,
}: {
  readonly feed: RunFeed;
  readonly run: RunView;
  readonly status: State;
}): JSX.Element {
  void feed.version.value;
  const [asking, setAsking] = useState<Asking>('none');
  const [doing, setDoing] = useState<string | null>(null);
  const [refusal, setRefusal] = useState<string | null>(null);
  const { run_id: id } = run;
  const forks = useForks(run.engine);
  // A repeated request starts only one run.
  const keys = useRef(new RequestKeys());
  const perform = (progress: string, send: () => Promise<RunView>): void => {
    setDoing(progress);
    setRefusal(null);
    send()
      .then((after) => {
        setAsking('none');
        if (after.run_id === id) feed.refresh();
        else go(`/runs/${after.run_id}`);
      })
      .catch((error: unknown) => {
        const isPassing = error instanceof ParleyError && error.passing;
        setRefusal(isPassing ? t.actions.tryAgainLater(messageOf(error)) : messageOf(error));
      })
      .finally(() => setDoing(null));
  };
  const pending = feed.isCurrent() ? feed.model.pending : null;
  const isConversation = pending?.question['channel'] === 'conversation';
  const fate = pending ? fates.value.get(pending.interactionId) : undefined;
  const hasEnded = isEnd(status);
  const ask = (next: Asking) => () => {
    setRefusal(null);
    setAsking(asking === next ? 'none' : next);
  };
  return (
    <div class="actions">
      <div class="options" role="group" aria-label={t.actions.label}>
        {mayAnswer() && pending && isConversation && (
          <button
            type="button"
            disabled={fate?.type === 'sending' || fate?.type === 'accepted'}
            onClick={() => void answer({ run_id: id, interaction_id: pending.interactionId }, { finish: true })}
          >
            {t.actions.finish}
          </button>
        )}
        {mayOperate() && !hasEnded && (
          <button
            type="button"
            class="danger"
            aria-expanded={asking === 'cancel'}
            disabled={doing !== null}
            onClick={ask('cancel')}
          >
            {t.actions.cancel}
          </button>
        )}
        {mayOperate() && (status === 'failed' || status === 'canceled') && (
          <button
            type="button"
            disabled={doing !== null}
            onClick={() =>
              perform(t.actions.retrying, () => client.retry(id, { request_id: keys.current.for({ retry: id }) }))
            }
          >
            {t.actions.retry}
          </button>
        )}
        {mayOperate() && hasEnded && (
          <button
            type="button"
            aria-expanded={asking === 'continue'}
            disabled={doing !== null}
            onClick={ask('continue')}
          >
            {t.actions.continue}
          </button>
        )}
        {mayOperate() && forks && (
          <button type="button" aria-expanded={asking === 'fork'} disabled={doing !== null} onClick={ask('fork')}>
            {t.actions.fork}
          </button>
        )}
      </div>
      {asking === 'cancel' && !hasEnded && (
        <div class="sure" role="group" aria-label={t.actions.sureCancel}>
          <span>{t.actions.sureCancelHelp}</span>
          <button
            type="button"
            class="danger"
            disabled={doing !== null}
            onClick={() => perform(t.actions.canceling, () => client.cancel(id))}
          >
            {t.actions.yesCancel}
          </button>
          <button type="button" onClick={() => setAsking('none')}>
            {t.no}
          </button>
        </div>
      )}
      {asking === 'continue' && hasEnded && (
        <NextPrompt
          key="continue"
          label={t.actions.continuePrompt}
          action={t.actions.continueNow}
          isBusy={doing !== null}
          onSend={(prompt) =>
            perform(t.actions.starting, () =>
              client.continueFrom(id, { prompt, request_id: keys.current.for({ continue: id, prompt }) }),
            )
          }
        />
      )}
      {asking === 'fork' && (
        <NextPrompt
          key="fork"
          label={t.actions.forkPrompt}
          action={t.actions.forkNow}
          isBusy={doing !== null}
          onSend={(prompt) =>
            perform(t.actions.copying, () =>
              client.fork(id, { prompt, request_id: keys.current.for({ fork: id, prompt }) }),
            )
          }
        />
      )}
      <p class="fate" role="status" aria-live="polite">
        {doing !== null && <span class="dim">{doing}</span>}
        {refusal !== null && <span class="bad">{refusal}</span>}
      </p>
    </div>
  );
}

// Whether the engine can fork conversations; false until that is known.
function useForks(engine: string): boolean {
  const [forks, setForks] = useState(false);
  useEffect(() => {
    const leave = new AbortController();
    persist(loadEngines, leave.signal).then(
      (list) => setForks(list?.engines.some((each) => each.name === engine && each.forks) ?? false),
      () => setForks(false),
    );
    return () => leave.abort();
  }, [engine]);
  return forks;
}

function NextPrompt({
  label,
  action,
  isBusy,
  onSend,
}: {
  readonly label: string;
  readonly action: string;
  readonly isBusy: boolean;
  readonly onSend: (prompt: string) => void;
}): JSX.Element {
  const [text, setText] = useState('');
  const send = (event: Event): void => {
    event.preventDefault();
    if (text.trim() !== '' && !isBusy) onSend(text);
  };
  const keys = (event: KeyboardEvent): void => {
    if (event.key === 'Enter' && (event.metaKey || event.ctrlKey)) send(event);
  };
  return (
    <form class="free" onSubmit={send}>
      <textarea
        rows={2}
        aria-label={label}
        placeholder={label}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={keys}
        ref={(field) => void (text === '' && field?.focus())}
      />
      <button type="submit" class="primary" disabled={isBusy || text.trim() === ''}>
        {action}
      </button>
    </form>
  );
}

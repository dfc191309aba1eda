// What can be done with a run, as far as one may: finish, cancel, try again, go on, fork. What the server refuses is
// said beside it.
import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { ParleyError, type RunView } from '../../../../src/client/index.js';
import { loadEngines } from '../../state/engines.js';
import { answer, fates } from '../../state/inbox.js';
import { RequestKeys } from '../../state/new-run.js';
import { persist } from '../../state/persist.js';
import { go } from '../../state/router.js';
import type { RunFeed } from '../../state/run-feed.js';
import { isEnd, type State } from '../../state/run-way.js';
import { client, mayAnswer, mayOperate, messageOf } from '../../state/server.js';

type Asking = 'nothing' | 'cancel' | 'continue' | 'fork';

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
  const [asking, setAsking] = useState<Asking>('nothing');
  const [doing, setDoing] = useState<string | null>(null);
  const [refusal, setRefusal] = useState<string | null>(null);
  const { run_id: id } = run;
  const forks = useForks(run.engine);
  // What was sent before and is sent again starts one run.
  const keys = useRef(new RequestKeys());
  const attempt = (what: string, work: () => Promise<RunView>): void => {
    setDoing(what);
    setRefusal(null);
    work()
      .then((after) => {
        setAsking('nothing');
        if (after.run_id === id) feed.refresh();
        else go(`/runs/${after.run_id}`);
      })
      .catch((error: unknown) => {
        const isPassing = error instanceof ParleyError && error.passing;
        const advice = isPassing ? '. Try it again when the server is back: it is done once.' : '';
        setRefusal(`${messageOf(error)}${advice}`);
      })
      .finally(() => setDoing(null));
  };
  const pending = feed.isCurrent() ? feed.model.pending : null;
  const isConversation = pending?.question['channel'] === 'conversation';
  const fate = pending ? fates.value.get(pending.interactionId) : undefined;
  const hasEnded = isEnd(status);
  const ask = (next: Asking) => () => {
    setRefusal(null);
    setAsking(asking === next ? 'nothing' : next);
  };
  return (
    <div class="actions">
      <div class="options" role="group" aria-label="What can be done">
        {mayAnswer() && pending && isConversation && (
          <button
            type="button"
            disabled={fate?.type === 'sending' || fate?.type === 'accepted'}
            onClick={() => void answer({ run_id: id, interaction_id: pending.interactionId }, { finish: true })}
          >
            Finish
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
            Cancel…
          </button>
        )}
        {mayOperate() && (status === 'failed' || status === 'canceled') && (
          <button
            type="button"
            disabled={doing !== null}
            onClick={() =>
              attempt('Starting it again…', () => client.retry(id, { request_id: keys.current.for({ retry: id }) }))
            }
          >
            Retry
          </button>
        )}
        {mayOperate() && hasEnded && (
          <button
            type="button"
            aria-expanded={asking === 'continue'}
            disabled={doing !== null}
            onClick={ask('continue')}
          >
            Continue…
          </button>
        )}
        {mayOperate() && forks && (
          <button type="button" aria-expanded={asking === 'fork'} disabled={doing !== null} onClick={ask('fork')}>
            Fork…
          </button>
        )}
      </div>
      {asking === 'cancel' && !hasEnded && (
        <div class="sure" role="group" aria-label="Cancel the run?">
          <span>End the run and its agent? It cannot be undone.</span>
          <button
            type="button"
            class="danger"
            disabled={doing !== null}
            onClick={() => attempt('Canceling…', () => client.cancel(id))}
          >
            Yes, cancel it
          </button>
          <button type="button" onClick={() => setAsking('nothing')}>
            No
          </button>
        </div>
      )}
      {asking === 'continue' && hasEnded && (
        <NextPrompt
          key="continue"
          label="What it should do next, in the same session"
          action="Continue"
          isBusy={doing !== null}
          onSend={(prompt) =>
            attempt('Starting…', () =>
              client.continueFrom(id, { prompt, request_id: keys.current.for({ continue: id, prompt }) }),
            )
          }
        />
      )}
      {asking === 'fork' && (
        <NextPrompt
          key="fork"
          label="What the copy of this conversation should do next"
          action="Fork"
          isBusy={doing !== null}
          onSend={(prompt) =>
            attempt('Copying the conversation…', () =>
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

// Whether the engine can begin with a copy; not offered until that is known.
function useForks(engine: string): boolean {
  const [forks, setForks] = useState(false);
  useEffect(() => {
    const leave = new AbortController();
    persist(loadEngines, leave.signal).then(
      (engines) => setForks(engines?.some((each) => each.name === engine && each.forks) ?? false),
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
        placeholder={`${label}…`}
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

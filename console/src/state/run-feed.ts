// A live run: its events folded into rows, shown at most once per frame, and the run loaded again whenever its state
// changes.
import { signal, type ReadonlySignal } from '@preact/signals';
import { t } from '../language/language.js';
import { ParleyError, type RunView } from '../../../src/client/index.js';
import { pollSoon } from './inbox-polling.js';
import { persist } from './persist.js';
import { RunModel } from './run-model.js';
import { client, lost, messageOf, open } from './server.js';
import { whileSeen } from './while-seen.js';

export interface RunFeed {
  readonly model: RunModel;
  // Increases whenever the model has changed.
  readonly version: ReadonlySignal<number>;
  readonly run: ReadonlySignal<RunView | null>;
  // Why the run cannot be shown.
  readonly failure: ReadonlySignal<string | null>;
  // Whether all events of the loaded run have arrived.
  isCurrent(): boolean;
  refresh(): void;
  stop(): void;
}

export function followRun(id: string): RunFeed {
  const model = new RunModel();
  const version = signal(0);
  const run = signal<RunView | null>(null);
  const failure = signal<string | null>(null);
  const leave = new AbortController();
  let frame = 0;

  const scheduleUpdate = (): void => {
    frame ||= requestAnimationFrame(() => {
      frame = 0;
      version.value += 1;
    });
  };
  const showFailure = (error: unknown): void => {
    if (!leave.signal.aborted)
      failure.value =
        error instanceof ParleyError && (error.code === 'RUN_NOT_FOUND' || error.code === 'INVALID_ARGUMENT')
          ? t.run.notFoundHelp
          : messageOf(error);
  };
  // One request at a time. A change during a request causes another one.
  let loading: 'no' | 'yes' | 'again' = 'no';
  const refresh = (): void => {
    if (loading !== 'no') return void (loading = 'again');
    loading = 'yes';
    persist(() => client.get(id), leave.signal)
      .then((view) => view && (run.value = view))
      .catch((error: unknown) => run.value === null && showFailure(error))
      .finally(() => {
        const again = loading === 'again';
        loading = 'no';
        if (again && !leave.signal.aborted) refresh();
      });
  };
  const follow = async (): Promise<void> => {
    for await (const event of whileSeen(
      (signal) => client.events(id, { cursor: model.seq, signal, onReconnect: lost, onOpen: open }),
      leave.signal,
    )) {
      open();
      model.push(event);
      if (event.type === 'conversation.state.changed' && (run.value === null || event.seq > run.value.fcmp_seq)) {
        refresh();
        pollSoon();
      }
      scheduleUpdate();
    }
    scheduleUpdate();
  };
  refresh();
  follow().catch(showFailure);
  return {
    model,
    version,
    run,
    failure,
    isCurrent: () => run.value !== null && model.seq >= run.value.fcmp_seq,
    refresh,
    stop: () => {
      leave.abort();
      cancelAnimationFrame(frame);
    },
  };
}

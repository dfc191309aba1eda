// A run as it happens: its events folded into rows, told to the page at most once a frame, and the run itself anew
// whenever its state changed.
import { signal, type ReadonlySignal } from '@preact/signals';
import { ParleyError, type RunView } from '../../../src/client/index.js';
import { lookSoon } from './inbox-looks.js';
import { persist } from './persist.js';
import { RunModel } from './run-model.js';
import { client, lost, messageOf, open } from './server.js';
import { whileSeen } from './while-seen.js';

export interface RunFeed {
  readonly model: RunModel;
  // Grows whenever the model has changed.
  readonly version: ReadonlySignal<number>;
  readonly run: ReadonlySignal<RunView | null>;
  // Why there is nothing to show.
  readonly failure: ReadonlySignal<string | null>;
  // Everything that was there when it was looked at has been told.
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

  const tell = (): void => {
    frame ||= requestAnimationFrame(() => {
      frame = 0;
      version.value += 1;
    });
  };
  const fail = (error: unknown): void => {
    if (!leave.signal.aborted)
      failure.value =
        error instanceof ParleyError && (error.code === 'RUN_NOT_FOUND' || error.code === 'INVALID_ARGUMENT')
          ? 'There is no such run.'
          : messageOf(error);
  };
  // One look at a time; what changes meanwhile is looked at after it.
  let looking: 'no' | 'yes' | 'again' = 'no';
  const refresh = (): void => {
    if (looking !== 'no') return void (looking = 'again');
    looking = 'yes';
    persist(() => client.get(id), leave.signal)
      .then((view) => view && (run.value = view))
      .catch((error: unknown) => run.value === null && fail(error))
      .finally(() => {
        const again = looking === 'again';
        looking = 'no';
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
        lookSoon();
      }
      tell();
    }
    tell();
  };
  refresh();
  follow().catch(fail);
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

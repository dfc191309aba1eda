// Background work of a server: sends webhooks, and deletes runs by the retention rules.
import type { FastifyBaseLogger } from 'fastify';
import type { SendingHook } from '../../hooks/load-hooks.js';
import { HookSender } from '../../hooks/sender.js';
import type { LiveSettings } from '../../settings/live-settings.js';
import { toTimestamp } from '../../kernel/clock.js';
import { sweepHourly } from '../../commands/retention.js';
import type { Io } from '../io.js';
import type { OpenWriter } from '../open-writer.js';

export interface Beside {
  // Stops deleting runs.
  stopSweeping(): Promise<void>;
  // Stops sending; `hurry` aborts the deliveries in progress.
  stopSending(hurry: Promise<void>): Promise<void>;
}

export interface BesideOptions {
  readonly settings: LiveSettings;
  readonly hooks: readonly SendingHook[];
  readonly log: Pick<FastifyBaseLogger, 'info' | 'warn' | 'error'>;
}

export function startBeside(writer: OpenWriter, options: BesideOptions, { timers }: Io): Beside {
  const { data, orchestrator, cluster, clock } = writer;
  const { settings, hooks, log } = options;
  const sender = new HookSender(
    {
      store: data.store,
      clock,
      timers,
      fetch,
      isShared: cluster !== null,
      onFailed: ({ delivery_id: id, hook, run_id: runId, type, tries }, error, nextAt) =>
        log.warn(
          { delivery_id: id, hook, run_id: runId, type, tries: tries + 1, error, next_try: toTimestamp(nextAt) },
          'a webhook delivery has failed',
        ),
      onGivenUp: ({ delivery_id: id, hook, run_id: runId, type }, error) =>
        log.warn({ delivery_id: id, hook, run_id: runId, type, error }, 'a webhook delivery was given up'),
      log: { error: (error, { message } = {}) => log.error({ err: error }, message) },
    },
    hooks,
  );
  const sweeping = sweepHourly(timers, async () => {
    try {
      const deleted = await orchestrator.sweep(settings.current.retention);
      if (deleted.length > 0) log.info({ runs: deleted.length }, 'runs were deleted by the retention rules');
    } catch (error) {
      log.error({ err: error }, 'the retention rules could not be applied');
    }
  });
  return { stopSweeping: () => sweeping.close(), stopSending: (hurry) => sender.close(hurry) };
}

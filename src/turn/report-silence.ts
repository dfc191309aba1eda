// Stores the silence of an engine as an event, together with its notifications. The turn continues.
import { toTimestamp } from '../kernel/clock.js';
import { draft } from '../rasp/draft.js';
import { buildSilenceDeliveries } from '../journal/build-deliveries.js';
import type { TurnContext } from './turn-context.js';

export function reportSilence(
  { deps, options, writer }: Pick<TurnContext, 'deps' | 'options' | 'writer'>,
  isToolRunning: boolean,
): void {
  const { run } = writer;
  const at = deps.clock.now();
  const event = draft('lifecycle.turn.silent', {
    noticed_at: toTimestamp(at),
    silent_sec: options.silence_notice_sec,
    tool_running: isToolRunning,
  });
  writer.addSilence(
    event,
    buildSilenceDeliveries(deps.hooks ?? [], deps.ids, run, {
      at,
      since: writer.journal.lastTs,
      url: deps.runUrl?.(run.run_id) ?? null,
    }),
  );
}

// A turn whose engine prints nothing: the silence is stored as an event, together with its notifications. The turn goes
// on.
import { toTimestamp } from '../kernel/clock.js';
import { draft } from '../rasp/draft.js';
import { buildSilenceDeliveries } from '../journal/build-deliveries.js';
import type { TurnScene } from './turn-scene.js';

export function reportSilence(
  { deps, options, writer }: Pick<TurnScene, 'deps' | 'options' | 'writer'>,
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

// What parley doctor finds out about damage: rows that cannot be read, pieces of journals that cannot be read or differ from their digest.
// Without --full it looks at the newest runs only, and stops after a few seconds; it always reports how much it looked at.
import { formatSize } from '../terminal/format-time.js';
import { damageIn } from '../kernel/stored-json.js';
import { everyRunId } from '../orchestrator/every-run.js';
import { readReadable } from '../orchestrator/read-readable.js';
import type { Store } from '../store/store.js';
import type { Finding } from './doctor.js';

export interface DamageOptions {
  // Every run with its whole journal, however long that takes.
  readonly full: boolean;
  readonly monotonicMs: () => number;
}

const SAMPLE_RUNS = 200;
const SAMPLE_MS = 5000;
// Events at the end of each journal of the sample.
const SAMPLE_EVENTS = 200;
const NAMED = 10;

export async function findDamage(store: Store, { full, monotonicMs }: DamageOptions): Promise<Finding[]> {
  const until = monotonicMs() + SAMPLE_MS;
  const damaged: string[] = [];
  let runs = 0;
  let isComplete = true;
  for await (const runId of everyRunId(store)) {
    if (!full && (runs === SAMPLE_RUNS || monotonicMs() > until)) {
      isComplete = false;
      break;
    }
    runs += 1;
    const [first] = await damageOf(store, runId, full);
    if (first !== undefined) damaged.push(`${runId} (${first})`);
  }
  const total = isComplete ? runs : Object.values(await store.countRuns()).reduce((sum, count) => sum + count, 0);
  const looked = full ? `checked all ${runs} runs with their journals`
    : `checked ${isComplete ? `all ${runs}` : `the newest ${runs} of ${total}`} runs and the end of their journals; --full checks everything`;
  if (damaged.length === 0) return [{ name: 'damage', level: 'ok', text: `none found: ${looked}` }];
  const rest = damaged.length > NAMED ? ` and ${damaged.length - NAMED} more` : '';
  const text = `${damaged.length} of ${runs} runs are damaged: ${damaged.slice(0, NAMED).join('; ')}${rest}. `
    + `Show and export them as far as possible (parley show, watch, logs), restore a backup, or delete them (parley rm); ${looked}`;
  return [{ name: 'damage', level: 'missing', text }];
}

async function damageOf(store: Store, runId: string, full: boolean): Promise<readonly string[]> {
  const salvaged = await store.salvageRun(runId);
  if (!salvaged || salvaged.damage.length > 0) return salvaged?.damage ?? [];
  const { rasp_seq: rasp, fcmp_seq: fcmp, digest } = salvaged.run.heads;
  try {
    for (const [protocol, head] of [['rasp', rasp], ['fcmp', fcmp]] as const) {
      for (let afterSeq = full ? 0 : Math.max(0, head - SAMPLE_EVENTS); afterSeq < head; ) {
        const { lastSeq, damaged: [piece] } = await readReadable(store, { runId, protocol, afterSeq, limit: SAMPLE_EVENTS });
        if (piece) return [`${protocol} events ${piece.from_seq} to ${piece.to_seq}: ${piece.message}`];
        if (lastSeq === afterSeq) return [`${protocol} events after ${afterSeq} are missing`];
        afterSeq = lastSeq;
      }
    }
    // A run at work may have gone on since its row was read.
    const now = full && (await store.recomputeDigest(runId)) !== digest ? await store.loadRun(runId) : null;
    return now && now.heads.digest === digest ? ['its events do not match their digest'] : [];
  } catch (error) {
    const damage = damageIn(error);
    if (!damage) throw error;
    return [damage.message];
  }
}

// Larger files take too long for a look.
export const CHECKED_BYTES = 256 * 1024 * 1024;

// `problems` is null where the file was not checked.
export function tellIntegrity(problems: readonly string[] | null, bytes: number): Finding {
  if (problems === null) return { name: 'integrity', level: 'note', text: `parley.db (${formatSize(bytes)}) was not checked: --full does, and may take minutes` };
  if (problems.length === 0) return { name: 'integrity', level: 'ok', text: `parley.db (${formatSize(bytes)}) has no structural damage` };
  return { name: 'integrity', level: 'missing', text: `parley.db is damaged: ${problems.join('; ')}. Stop Parley and restore a backup, or salvage it with sqlite3 parley.db .recover` };
}

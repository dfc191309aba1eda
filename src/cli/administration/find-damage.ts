// Searches for damage for parley doctor: unreadable rows and parts of journals, and with --full everything that parley
// verify finds, files included. Without --full it checks only the newest runs and stops after a few seconds. It always
// reports how much it checked.
import { formatSize } from '../../terminal/format-time.js';
import { damageIn } from '../../kernel/stored-json.js';
import { everyRunId } from '../../journal/every-run.js';
import { headOf } from '../../journal/load-run.js';
import { describeDamage } from '../../journal/read-readable.js';
import { RequestError } from '../../run/request-error.js';
import type { RunRecord, Store } from '../../store/store.js';
import type { CheckRun } from '../reading/check-run.js';
import type { Finding } from './doctor.js';

export interface DamageOptions {
  // Check every run with its whole journal and its files, however long that takes.
  readonly full: boolean;
  readonly monotonicMs: () => number;
  // Used with `full`.
  readonly checkRun: CheckRun;
}

const SAMPLE_RUNS = 200;
const SAMPLE_MS = 5000;
// Events at the end of each journal of the sample.
const SAMPLE_EVENTS = 200;
const NAMED = 10;
const WAYS_OUT =
  'Save the readable parts (parley show, parley watch --json, parley logs; from a server GET ' +
  '/v1/runs/ID/archive), restore a backup ' +
  '(docs/guides/backup-and-restore.md), or delete them (parley rm)';

export async function findDamage(store: Store, look: DamageOptions): Promise<Finding[]> {
  const { full, monotonicMs } = look;
  const until = monotonicMs() + SAMPLE_MS;
  const found = { damaged: [] as string[], unchecked: [] as string[], elsewhere: 0 };
  let runs = 0;
  let isComplete = true;
  for await (const runId of everyRunId(store)) {
    if (!full && (runs === SAMPLE_RUNS || monotonicMs() > until)) {
      isComplete = false;
      break;
    }
    runs += 1;
    const {
      damage: [first],
      unchecked,
      isElsewhere,
    } = await lookAtRun(store, runId, look);
    if (first !== undefined) found.damaged.push(`${runId} (${first})`);
    if (unchecked !== undefined) found.unchecked.push(unchecked);
    if (isElsewhere) found.elsewhere += 1;
  }
  const total = isComplete ? runs : Object.values(await store.countRuns()).reduce((sum, count) => sum + count, 0);
  const elsewhere =
    found.elsewhere === 0
      ? ''
      : ` (the files of ${found.elsewhere} are on another host, or gone, and were not checked)`;
  const looked = full
    ? `checked all ${runs} runs with their journals and files${elsewhere}`
    : `checked ${isComplete ? `all ${runs}` : `the newest ${runs} of ${total}`} runs and the end of their ` +
      'journals; --full checks everything';
  const notes = listSome(found.unchecked).map((text): Finding => ({ name: 'unchecked', level: 'note', text }));
  if (found.damaged.length === 0) return [{ name: 'damage', level: 'ok', text: `none found: ${looked}` }, ...notes];
  return [
    {
      name: 'damage',
      level: 'missing',
      text:
        `${found.damaged.length} of ${runs} runs are damaged: ${listSome(found.damaged).join('; ')}. ` +
        `${WAYS_OUT}; ${looked}`,
    },
    ...notes,
  ];
}

function listSome(texts: readonly string[]): string[] {
  return texts.length > NAMED ? [...texts.slice(0, NAMED), `and ${texts.length - NAMED} more`] : [...texts];
}

interface Looked {
  readonly damage: readonly string[];
  // Why the run could not be checked.
  readonly unchecked?: string;
  // The files of the run are not on this host.
  readonly isElsewhere?: boolean;
}

async function lookAtRun(store: Store, runId: string, look: DamageOptions): Promise<Looked> {
  const salvaged = await store.salvageRun(runId);
  if (!salvaged || salvaged.damage.length > 0) return { damage: salvaged?.damage ?? [] };
  const { run } = salvaged;
  try {
    for (const protocol of ['rasp', 'fcmp'] as const) {
      const head = headOf(run, protocol);
      const damage = await describeDamage(store, {
        runId,
        protocol,
        head,
        afterSeq: look.full ? 0 : Math.max(0, head - SAMPLE_EVENTS),
      });
      if (damage.length > 0) return { damage };
    }
    return look.full ? await lookAtFiles(store, run, look.checkRun) : { damage: [] };
  } catch (error) {
    const damage = damageIn(error);
    if (!damage) throw error;
    return { damage: [damage.message] };
  }
}

// Runs the checks of parley verify.
async function lookAtFiles(store: Store, run: RunRecord, checkRun: CheckRun): Promise<Looked> {
  try {
    const checks = await checkRun(store, run);
    if (checks === null) return { damage: await compareDigest(store, run), isElsewhere: true };
    return { damage: checks.filter(({ ok }) => !ok).map(({ name, finding }) => `${name}: ${finding}`) };
  } catch (error) {
    if (!(error instanceof RequestError && error.code === 'VERIFY_FAILED')) throw error;
    return { damage: [], unchecked: error.message };
  }
}

async function compareDigest(store: Store, { run_id: runId, heads: { digest } }: RunRecord): Promise<string[]> {
  // A running run may have appended events since its row was read.
  const now = (await store.recomputeDigest(runId)) === digest ? null : await store.loadRun(runId);
  return now?.heads.digest === digest ? ['its events do not match their digest'] : [];
}

// Larger files are checked only with --full, because that takes minutes.
export const CHECKED_BYTES = 256 * 1024 * 1024;

// `problems` is null if the file was not checked.
export function tellIntegrity(problems: readonly string[] | null, bytes: number): Finding {
  if (problems === null)
    return {
      name: 'integrity',
      level: 'note',
      text: `parley.db (${formatSize(bytes)}) was not checked: --full does, and may take minutes`,
    };
  if (problems.length === 0)
    return { name: 'integrity', level: 'ok', text: `parley.db (${formatSize(bytes)}) has no structural damage` };
  return {
    name: 'integrity',
    level: 'missing',
    text:
      `parley.db is damaged: ${problems.join('; ')}. Stop Parley and restore a backup, or salvage it with ` +
      'sqlite3 parley.db .recover',
  };
}

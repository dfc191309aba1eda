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
import { sayError, sayMessage, texts } from '../language/language.js';
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

export async function findDamage(store: Store, look: DamageOptions): Promise<Finding[]> {
  const { full, monotonicMs } = look;
  const { doctor: t } = texts();
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
    if (first !== undefined) found.damaged.push(t.damagedRun(runId, first));
    if (unchecked !== undefined) found.unchecked.push(unchecked);
    if (isElsewhere) found.elsewhere += 1;
  }
  const total = isComplete ? runs : Object.values(await store.countRuns()).reduce((sum, count) => sum + count, 0);
  const checked = full
    ? found.elsewhere === 0
      ? t.checkedFull(runs)
      : t.checkedFullButElsewhere(runs, found.elsewhere)
    : isComplete
      ? t.checkedEnds(runs)
      : t.checkedSome(runs, total);
  const notes = [
    ...listSome(found.unchecked).map((text): Finding => ({ name: 'unchecked', level: 'note', text })),
    ...describeGroups(store),
    ...(await describeTotals(store, look)),
  ];
  if (found.damaged.length === 0) return [{ name: 'damage', level: 'ok', text: t.noDamage(checked) }, ...notes];
  return [
    {
      name: 'damage',
      level: 'missing',
      text: t.damage(found.damaged.length, runs, listSome(found.damaged).join(t.next), t.waysOut, checked),
    },
    ...notes,
  ];
}

// Counting all rows of more runs takes longer than a few seconds.
const COUNTED_RUNS = 200_000;

async function describeTotals(store: Store, { full }: DamageOptions): Promise<Finding[]> {
  const { doctor: t } = texts();
  const runs = Object.values(await store.countRuns()).reduce((sum, count) => sum + count, 0);
  if (!full && runs > COUNTED_RUNS) return [{ name: 'totals', level: 'note', text: t.totalsUnchecked(runs) }];
  const wrong = (await store.findWrongTotals()).map(({ name, total, counted }) => t.wrongTotal(name, total, counted));
  return wrong.length === 0
    ? []
    : [{ name: 'totals', level: 'missing', text: t.wrongTotals(listSome(wrong).join(t.next)) }];
}

// Damaged rows that hold recent events of several runs.
function describeGroups(store: Store): Finding[] {
  const groups = listSome((store.findGroupDamage?.() ?? []).map(sayMessage));
  if (groups.length === 0) return [];
  const { doctor: t } = texts();
  return [{ name: 'damage', level: 'missing', text: t.damagedGroups(groups.join(t.next)) }];
}

function listSome(found: readonly string[]): string[] {
  const { andMore } = texts().doctor;
  return found.length > NAMED ? [...found.slice(0, NAMED), andMore(found.length - NAMED)] : [...found];
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
  if (!salvaged || salvaged.damage.length > 0) return { damage: (salvaged?.damage ?? []).map(sayMessage) };
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
      if (damage.length > 0) return { damage: damage.map(sayMessage) };
    }
    return look.full ? await lookAtFiles(store, run, look.checkRun) : { damage: [] };
  } catch (error) {
    const damage = damageIn(error);
    if (!damage) throw error;
    return { damage: [sayMessage(damage.damage)] };
  }
}

// Runs the checks of parley verify.
async function lookAtFiles(store: Store, run: RunRecord, checkRun: CheckRun): Promise<Looked> {
  try {
    const checks = await checkRun(store, run);
    if (checks === null) return { damage: await compareDigest(store, run), isElsewhere: true };
    const { check } = texts().doctor;
    return { damage: checks.filter(({ ok }) => !ok).map(({ name, message }) => check(name, sayMessage(message))) };
  } catch (error) {
    if (!(error instanceof RequestError && error.code === 'VERIFY_FAILED')) throw error;
    return { damage: [], unchecked: sayError(error) };
  }
}

async function compareDigest(store: Store, { run_id: runId, heads: { digest } }: RunRecord): Promise<string[]> {
  // A running run may have appended events since its row was read.
  const now = (await store.recomputeDigest(runId)) === digest ? null : await store.loadRun(runId);
  return now?.heads.digest === digest ? [texts().doctor.digestDiffers] : [];
}

// Larger files are checked only with --full, because that takes minutes.
export const CHECKED_BYTES = 256 * 1024 * 1024;

// `problems` is null if the file was not checked.
export function tellIntegrity(problems: readonly string[] | null, bytes: number): Finding {
  const { doctor: t } = texts();
  const size = formatSize(bytes);
  if (problems === null) return { name: 'integrity', level: 'note', text: t.integrityUnchecked(size) };
  return problems.length === 0
    ? { name: 'integrity', level: 'ok', text: t.integrityOk(size) }
    : { name: 'integrity', level: 'missing', text: t.integrityBroken(problems.join(t.next)) };
}

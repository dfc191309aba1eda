// A run whose rows may be damaged, read as far as possible: for showing, exporting and deleting it. Nothing here throws
// for damage; each damaged column is named instead.
import { damageIn } from '../kernel/stored-json.js';
import { salvageRun } from './rows.js';
import type { InteractionRecord, RunRecord, Store } from './store.js';

export interface SalvagedRun {
  // With a neutral value in the place of each damaged column.
  readonly run: RunRecord;
  // The question that it waits for, if that can be read.
  readonly pending: InteractionRecord | null;
  // Which columns are damaged, in words; empty: none.
  readonly damage: readonly string[];
}

export interface RunSource extends Pick<Store, 'loadInteraction' | 'loadHandle'> {
  // The columns of the run's row, numbers as numbers where they are some.
  readonly row: Readonly<Record<string, unknown>>;
  // The last questions of the run, newest first.
  readonly questionIds: readonly string[];
}

// Questions that are looked at; damage in older ones is found by verify.
export const QUESTIONS = 100;

export async function salvage({ row, questionIds, ...store }: RunSource): Promise<SalvagedRun> {
  const damage: string[] = [];
  const run = salvageRun(row, damage);
  const note = (error: unknown): null => {
    const found = damageIn(error);
    if (!found) throw error;
    damage.push(found.message);
    return null;
  };
  let pending: InteractionRecord | null = null;
  for (const id of questionIds) {
    const question = await store.loadInteraction(id).catch(note);
    if (question?.state === 'pending') pending = question;
  }
  await store.loadHandle(run.request_id).catch(note);
  return { run, pending, damage };
}

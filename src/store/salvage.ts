// Reads a run with damaged rows as far as possible, to show, export or delete it. Damage never throws; each damaged
// column is named instead.
import type { Message } from '../kernel/message.js';
import { damageIn } from '../kernel/stored-json.js';
import { salvageRun } from './rows.js';
import type { InteractionRecord, RunRecord, Store } from './store.js';

export interface SalvagedRun {
  // The run, with a neutral value for each damaged column.
  readonly run: RunRecord;
  // The open question, if it can be read.
  readonly pending: InteractionRecord | null;
  // Descriptions of the damaged columns; empty: none.
  readonly damage: readonly Message[];
}

export interface RunSource extends Pick<Store, 'loadInteraction' | 'loadHandle'> {
  // The columns of the run's row; numbers as numbers if possible.
  readonly row: Readonly<Record<string, unknown>>;
  // The last questions of the run, newest first.
  readonly questionIds: readonly string[];
}

// How many questions are checked; verify finds damage in older ones.
export const QUESTIONS = 100;

export async function salvage({ row, questionIds, ...store }: RunSource): Promise<SalvagedRun> {
  const damage: Message[] = [];
  const run = salvageRun(row, damage);
  const note = (error: unknown): null => {
    const problem = damageIn(error);
    if (!problem) throw error;
    damage.push(problem.damage);
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

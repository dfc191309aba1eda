// Cancels a run from the command line: directly if no process writes to the data directory, otherwise through the
// server or the worker that runs it.
import { RequestError, refusal } from '../../run/request-error.js';
import { isTerminal } from '../../run/statechart.js';
import { readWriter } from '../../store/sqlite/data-dir.js';
import type { RunRecord } from '../../store/store.js';
import type { Io } from '../io.js';
import { openToRead } from '../open-data.js';
import { findServer } from '../serving/server.js';
import { isAlive } from '../writer-alive.js';

const POLL_MS = 50;
// Longer than the grace period of an engine plus the time to kill one that ignores it.
const PATIENCE_MS = 30_000;

export async function cancelRun(path: string, runId: string, io: Io): Promise<RunRecord> {
  const server = await findServer(path, io);
  if (server) {
    await server.call((client) => client.cancel(runId));
    return untilEnded(path, runId, io);
  }
  try {
    // Loaded on demand, because it is most of Parley.
    const { actorOf, openWriter } = await import('../open-writer.js');
    const writer = await openWriter(path, io, { runsTurns: false });
    try {
      return await writer.orchestrator.cancel(runId, actorOf(io));
    } finally {
      await writer.close();
    }
  } catch (error) {
    const worker = error instanceof RequestError && error.code === 'DATA_DIR_IN_USE' ? readWriter(path) : null;
    if (worker?.run_id !== runId || !isAlive(worker)) throw error;
    process.kill(worker.pid, 'SIGINT');
    return untilEnded(path, runId, io);
  }
}

async function untilEnded(path: string, runId: string, io: Io): Promise<RunRecord> {
  const data = await openToRead(path, io);
  const startedAt = io.clock.now();
  try {
    for (;;) {
      const run = await data?.store.loadRun(runId);
      if (!run) throw refusal('RUN_NOT_FOUND.unknown', { run: runId });
      if (run.status === 'canceled') return run;
      if (isTerminal(run.status)) throw refusal('RUN_ENDED.before_cancel', { run: runId, status: run.status });
      if (io.clock.now() - startedAt > PATIENCE_MS)
        throw refusal('DATA_DIR_IN_USE.cancel', { run: runId, status: run.status });
      await new Promise((resolve) => io.timers.set(POLL_MS, () => resolve(null)));
    }
  } finally {
    await data?.close();
  }
}

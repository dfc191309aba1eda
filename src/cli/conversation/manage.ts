// parley cancel and parley rm.
import { cancelRun } from './cancel-run.js';
import { withRun } from '../reading/find-run.js';
import { dataDirOf, type DataOption } from '../data-dir.js';
import { EXIT, type Io } from '../io.js';
import { actorOf, openWriter } from '../open-writer.js';
import { findServer } from '../serving/server.js';
import { runLine } from './tell.js';
import { texts } from '../language/language.js';

type Options = DataOption & { readonly json?: boolean };

export async function cancelCommand(runRef: string, options: Options, io: Io): Promise<number> {
  const runId = await withRun({ ...options, runRef }, io, async (_data, run) => run.run_id);
  const run = await cancelRun(dataDirOf(options, io), runId, io);
  io.stdout.write(options.json ? `${runLine(run, null, io.clock.now())}\n` : `${texts().say.canceledRun(runId)}\n`);
  return EXIT.ok;
}

export async function removeCommand(runRefs: readonly string[], options: Options, io: Io): Promise<number> {
  // Resolves all references first: an unknown one fails before any run is deleted, and "last" keeps its meaning.
  const runIds = new Set<string>();
  for (const runRef of runRefs) runIds.add(await withRun({ ...options, runRef }, io, async (_data, run) => run.run_id));
  const path = dataDirOf(options, io);
  const server = await findServer(path, io);
  const writer = server ? null : await openWriter(path, io, { runsTurns: false });
  try {
    for (const runId of runIds) {
      if (server) await server.call((client) => client.delete(runId));
      else await writer?.orchestrator.delete(runId, { actor: actorOf(io), address: null });
      io.stdout.write(
        options.json ? `${JSON.stringify({ type: 'deleted', run_id: runId })}\n` : `${texts().say.deletedRun(runId)}\n`,
      );
    }
    return EXIT.ok;
  } finally {
    await writer?.close();
  }
}

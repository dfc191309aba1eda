// parley cancel and parley rm.
import { cancelRun } from './cancel-run.js';
import { withRun } from '../reading/find-run.js';
import { dataDirOf, type DataOption } from '../data-dir.js';
import { EXIT, type Io } from '../io.js';
import { actorOf, openWriter } from '../open-writer.js';
import { findServer } from '../serving/server.js';
import { runLine } from './tell.js';

type Options = DataOption & { readonly json?: boolean };

export async function cancelCommand(meant: string, options: Options, io: Io): Promise<number> {
  const runId = await withRun(meant, options, io, async (_data, run) => run.run_id);
  const run = await cancelRun(dataDirOf(options, io), runId, io);
  io.stdout.write(options.json ? `${runLine(run, null, io.clock.now())}\n` : `canceled ${runId}\n`);
  return EXIT.ok;
}

export async function removeCommand(meant: readonly string[], options: Options, io: Io): Promise<number> {
  // All names are taken for what they mean now, and one that means nothing is told before anything is deleted.
  const runIds = new Set<string>();
  for (const each of meant) runIds.add(await withRun(each, options, io, async (_data, run) => run.run_id));
  const path = dataDirOf(options, io);
  const server = await findServer(path, io);
  const writer = server ? null : await openWriter(path, io, { plays: false });
  try {
    for (const runId of runIds) {
      if (server) await server.call((client) => client.delete(runId));
      else await writer?.orchestrator.delete(runId, { actor: actorOf(io), address: null });
      io.stdout.write(options.json ? `${JSON.stringify({ type: 'deleted', run_id: runId })}\n` : `deleted ${runId}\n`);
    }
    return EXIT.ok;
  } finally {
    await writer?.close();
  }
}

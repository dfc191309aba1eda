// The output of a resident engine after its last turn, as events: for a run that ends without another turn.
import { createTurnParser, findEngine } from '../engines/registry.js';
import { newMemory } from '../engines/turn-parser.js';
import { fileSize } from '../files/read-file.js';
import { draft, type RaspDraft } from '../rasp/draft.js';
import type { RunRecord } from '../store/store.js';
import type { OrchestratorDeps } from './deps.js';
import { runFolder } from './run-folder.js';
import { logsOf, readEnds, readLog } from './turn-logs.js';

// Returns no events for other engines, and null if the logs are on another host. A log that cannot be read does not
// keep the run from ending.
export async function readTail(
  deps: Pick<OrchestratorDeps, 'store' | 'dataDir' | 'files'>,
  run: RunRecord,
): Promise<RaspDraft[] | null> {
  const engine = findEngine(run.spec.engine);
  if (!engine.resident) return [];
  if (!(await deps.files.isHere(run.run_id))) return null;
  try {
    const logs = logsOf(engine, runFolder(deps.dataDir, run.run_id), run.attempt_number);
    const at = await readEnds(deps.store, run);
    if (((await fileSize(logs.stdout)) ?? 0) <= at.stdout && ((await fileSize(logs.stderr)) ?? 0) <= at.stderr)
      return [];
    const handle = await deps.store.loadHandle(run.request_id);
    const parser = createTurnParser(engine, undefined, { at, memory: newMemory(handle?.handle_value ?? null) });
    const drafts: RaspDraft[] = [];
    const streams = {
      stdout: await readLog(logs.stdout, at.stdout, (chunk) => void drafts.push(...parser.push('stdout', chunk))),
      stderr: await readLog(logs.stderr, at.stderr, (chunk) => void drafts.push(...parser.push('stderr', chunk))),
    };
    drafts.push(...parser.finish());
    return [...drafts, draft('lifecycle.process.ended', { streams })];
  } catch (error) {
    return [
      draft('diagnostic.engine.warning', {
        message:
          'what the engine printed after its last turn could not be read: ' +
          `${error instanceof Error ? error.message : String(error)}`,
      }),
    ];
  }
}

// The result of a run as a file for people and their tools: whole, or not there at all. It is stored with the run as
// well.
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { replaceFileMeanwhile } from '../files/replace-file.js';
import type { Json } from '../kernel/json.js';
import { draft, type RaspDraft } from '../rasp/draft.js';
import { makeFolder, runFolder } from '../journal/run-folder.js';

const NAME = 'result.json';

// Answers the event that tells of it. `check` throws if it must not be written any more.
export async function writeResult(
  dataDir: string,
  runId: string,
  result: Json,
  check?: () => void,
): Promise<RaspDraft> {
  const { path: folder } = runFolder(dataDir, runId);
  const bytes = Buffer.from(`${JSON.stringify(result, null, 2)}\n`);
  makeFolder(folder);
  await replaceFileMeanwhile(join(folder, NAME), bytes, check);
  return draft('artifact.result.written', {
    path: NAME,
    bytes: bytes.length,
    sha256: createHash('sha256').update(bytes).digest('hex'),
  });
}

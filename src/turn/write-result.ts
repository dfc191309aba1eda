// Writes the result of a run to a file for people and their tools, completely or not at all. The store has it as well.
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { replaceFileMeanwhile } from '../files/replace-file.js';
import type { Json } from '../kernel/json.js';
import { draft, type RaspDraft } from '../rasp/draft.js';
import { runFolder } from '../journal/run-folder.js';

const NAME = 'result.json';

export interface ResultFile {
  readonly dataDir: string;
  readonly runId: string;
  readonly result: Json;
  // Throws if the result must not be written any more.
  readonly check?: () => void;
}

// Returns the event that records the file.
export async function writeResult({ dataDir, runId, result, check }: ResultFile): Promise<RaspDraft> {
  const { path: folder } = runFolder(dataDir, runId);
  const bytes = Buffer.from(`${JSON.stringify(result, null, 2)}\n`);
  await replaceFileMeanwhile(join(folder, NAME), bytes, check);
  return draft('artifact.result.written', {
    path: NAME,
    bytes: bytes.length,
    sha256: createHash('sha256').update(bytes).digest('hex'),
  });
}

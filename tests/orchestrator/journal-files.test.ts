// The files beside the journal keep nobody from ending.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { JournalFiles } from '../../src/orchestrator/journal-files.js';
import type { Store } from '../../src/store/store.js';

test('a data directory that is gone is told, and the end comes all the same', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'parley-files-'));
  writeFileSync(join(dir, 'exports.clean'), '');
  const failures: unknown[] = [];
  const files = new JournalFiles({ onCommitted: () => () => {} } as unknown as Store, dir, (error) => failures.push(error));
  rmSync(dir, { recursive: true });
  await files.close();
  expect(failures).toMatchObject([{ code: 'ENOENT' }]);
});

// Concurrent deletions of a run, also while it is read: all of it is removed, and no caller gets an internal error.
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { serve } from '../support/served.js';

test('concurrent deletes remove a run with all its files, and each gets one of two results', async () => {
  const served = await serve();
  try {
    for (let round = 0; round < 10; round += 1) {
      const { run_id: id } = await served.client.create({ engine: 'codex', prompt: '[[answer x]]' });
      await served.bench.orchestrator.waitUntilIdle(id);
      const workspace = join(served.bench.data.path, 'runs', id, 'workspace');
      for (let folder = 0; folder < 20; folder += 1) {
        mkdirSync(join(workspace, String(folder)), { recursive: true });
        for (let file = 0; file < 10; file += 1) writeFileSync(join(workspace, String(folder), String(file)), 'x');
      }
      const looks = ['archive', 'files', 'verify', 'rasp/history', 'events'].map((path) =>
        served.fetch(`/v1/runs/${id}/${path}`).then((answer) =>
          answer.text().then(
            () => answer.status,
            () => 0,
          ),
        ),
      );
      const deleted = await Promise.all(
        Array.from({ length: 4 }, async () => (await served.fetch(`/v1/runs/${id}`, { method: 'DELETE' })).status),
      );
      expect(deleted.filter((status) => status === 204)).toHaveLength(1);
      expect(deleted.filter((status) => status !== 204 && status !== 404)).toEqual([]);
      for (const status of await Promise.all(looks)) expect([0, 200, 404]).toContain(status);
      expect(readdirSync(join(served.bench.data.path, 'runs')).filter((name) => name.startsWith(id))).toEqual([]);
    }
    expect(served.logged.join('')).not.toMatch(/"level":[56]0|INTERNAL/);
  } finally {
    await served.close();
  }
});

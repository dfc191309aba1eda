// Creates many runs at once, as if a server had accepted them and stopped before it ran them.
import { singleHost } from '../../src/ownership/single-host.js';
import { mkdirSync } from 'node:fs';
import { systemClock } from '../../src/kernel/clock.js';
import { createIds } from '../../src/kernel/ids.js';
import { createRun } from '../../src/commands/create-run.js';
import { openDataDir } from '../../src/store/sqlite/data-dir.js';
import type { Site } from '../support/command.js';

export async function fillWith(site: Site, prompts: readonly string[]): Promise<void> {
  mkdirSync(site.data, { recursive: true, mode: 0o700 });
  const data = await openDataDir(site.data, { pid: process.pid });
  const deps = {
    store: data.store,
    clock: systemClock,
    ids: createIds(systemClock),
    dataDir: data.path,
    queueLimit: () => Infinity,
    ...singleHost(data.store),
    runtime: {},
  } as never;
  for (const prompt of prompts) await createRun(deps, { engine: 'rehearsal', prompt }, {});
  await data.close();
}

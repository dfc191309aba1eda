// The dispatch within one process does what every dispatch must do.
import { singleHost } from '../../src/ownership/single-host.js';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EmbeddedDispatch } from '../../src/dispatch/embedded.js';
import { systemClock } from '../../src/kernel/clock.js';
import { systemTimers } from '../../src/process/timers.js';
import { openDataDir } from '../../src/store/sqlite/data-dir.js';
import { describeDispatch } from './conformance.js';

describeDispatch('embedded', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'parley-dispatch-'));
  const { store, close } = await openDataDir(dir, { pid: process.pid });
  return {
    store,
    create: (handlers, slots) =>
      new EmbeddedDispatch({ store, ...singleHost(store), timers: systemTimers, clock: systemClock }, handlers, {
        slots,
      }),
    cleanup: async () => {
      await close();
      rmSync(dir, { recursive: true });
    },
  };
});

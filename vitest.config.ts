import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    projects: [
      // Some start a process, and the machine may be busy.
      { test: { name: 'unit', testTimeout: 30_000, include: ['tests/**/*.test.ts'], exclude: ['tests/slow/**', 'tests/stand-ins/**', 'tests/engines-real/**', 'tests/browser/**', 'tests/postgres/**', 'tests/torture/**', 'tests/fuzz/**', 'tests/security/**'] } },
      { test: { name: 'slow', include: ['slow', 'stand-ins', 'torture', 'fuzz', 'security'].map((folder) => `tests/${folder}/**/*.test.ts`), testTimeout: 120_000, hookTimeout: 60_000 } },
      // The shared store, on a real PostgreSQL that is started for it; most of the time is spent in waiting for leases.
      { test: { name: 'postgres', include: ['tests/postgres/**/*.test.ts'], globalSetup: ['tests/postgres/start-server.ts'], testTimeout: 60_000, hookTimeout: 60_000, maxWorkers: 2, sequence: { groupOrder: 1 } } },
      // The console in a real browser; one at a time, so that figures mean something.
      { test: { name: 'browser', include: ['tests/browser/**/*.test.ts'], testTimeout: 60_000, hookTimeout: 60_000, maxWorkers: 1 } },
      // The real CLIs, which `npm run test:engines` installs first.
      { test: { name: 'engines', include: ['tests/engines-real/**/*.test.ts'], testTimeout: 180_000, maxWorkers: 2 } },
    ],
  },
});

import { defineConfig } from 'vitest/config';

// What is waited for comes on a busy machine, too, only later.
const expect = { poll: { timeout: 20_000 } };

export default defineConfig({
  test: {
    projects: [
      // Some start a process, and the machine may be busy.
      {
        test: {
          expect,
          name: 'unit',
          testTimeout: 30_000,
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
          include: ['tests/**/*.test.ts'],
          exclude: [
            'tests/slow/**',
            'tests/stand-ins/**',
            'tests/engines-real/**',
            'tests/browser/**',
            'tests/postgres/**',
            'tests/torture/**',
            'tests/fuzz/**',
            'tests/security/**',
          ],
        },
      },
      {
        test: {
          expect,
          name: 'slow',
          include: ['slow', 'stand-ins', 'torture', 'fuzz', 'security'].map((folder) => `tests/${folder}/**/*.test.ts`),
          testTimeout: 120_000,
          hookTimeout: 60_000,
          sequence: { groupOrder: 2 },
        },
      },
      // The shared store, on a real PostgreSQL that is started for it; most of the time is spent in waiting for leases.
      {
        test: {
          expect,
          name: 'postgres',
          include: ['tests/postgres/**/*.test.ts'],
          globalSetup: ['tests/postgres/start-server.ts'],
          testTimeout: 60_000,
          hookTimeout: 60_000,
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
        },
      },
      // The console in a real browser; one at a time, so that figures mean something.
      {
        test: {
          expect,
          name: 'browser',
          include: ['tests/browser/**/*.test.ts'],
          testTimeout: 60_000,
          hookTimeout: 60_000,
          maxWorkers: 1,
        },
      },
      // The real CLIs, which `npm run test:engines` installs first.
      {
        test: {
          expect,
          name: 'engines',
          include: ['tests/engines-real/**/*.test.ts'],
          testTimeout: 180_000,
          maxWorkers: 2,
        },
      },
    ],
  },
});

// A project for each lane of `.ci/run` that runs tests. `npm run check` runs unit; `npm test` runs unit, programs,
// slow and postgres.
import { defineConfig } from 'vitest/config';

// A busy machine needs longer for the same work: this only limits how long a failing test waits.
const expect = { poll: { timeout: 20_000 } };

// Start a program or a thread in almost every test: more than a third of the CPU time of all quick tests. `npm run test:unit` runs them,
// `npm run check` does not.
const PROGRAMS = [
  'tests/app-server/back-pressure.test.ts',
  'tests/app-server/contention.test.ts',
  'tests/app-server/lifetime.test.ts',
  'tests/app-server/resident-codex.test.ts',
  'tests/app-server/threads.test.ts',
  'tests/app-server/turns.test.ts',
  'tests/docs/code-blocks.test.ts',
  'tests/cli/doctor.test.ts',
  'tests/files/read-file.test.ts',
  'tests/files/replace-file.test.ts',
  'tests/process/child-end.test.ts',
  'tests/process/child-output.test.ts',
  'tests/process/child-start.test.ts',
  'tests/process/end-leftovers.test.ts',
  'tests/process/end-tree.test.ts',
  'tests/rehearsal/program.test.ts',
  'tests/rehearsal/recordings.test.ts',
  'tests/rehearsal/traced.test.ts',
  'tests/scripts/ci-summary.test.ts',
  'tests/scripts/install-engines.test.ts',
];

// Long forms: seeded searches, floods, planted repositories, large runs, databases of every earlier version, deadlines
// that burn CPU time, and several hosts, which wait for leases to expire. `npm run test:long` and `.ci/run` run them,
// `npm test` does not.
// `npm run torture` runs some of them for longer.
const LONG = [
  'tests/torture/**/*.test.ts',
  'tests/fuzz/**/*.test.ts',
  'tests/security/data-directory.test.ts',
  'tests/slow/bounded-memory.test.ts',
  'tests/slow/cli/chinese.test.ts',
  'tests/slow/cli/mistakes.test.ts',
  'tests/slow/cli/survival.test.ts',
  'tests/slow/crash.test.ts',
  'tests/slow/damaged-rows.test.ts',
  'tests/slow/large-runs.test.ts',
  'tests/slow/lost-files.test.ts',
  'tests/slow/model.test.ts',
  'tests/slow/schema-deadlines.test.ts',
  'tests/slow/soak.test.ts',
  'tests/slow/service/hostile.test.ts',
  'tests/slow/service/limits.test.ts',
  'tests/slow/service/survival.test.ts',
  'tests/slow/service/unread-bytes.test.ts',
  'tests/slow/upgrade.test.ts',
  'tests/security/hostile-load.test.ts',
  'tests/security/planted-repository.test.ts',
  'tests/postgres/access.test.ts',
  'tests/postgres/damaged.test.ts',
  'tests/postgres/files.test.ts',
  'tests/postgres/hosts.test.ts',
  'tests/postgres/import.test.ts',
  'tests/postgres/outage.test.ts',
  'tests/postgres/planted-repository.test.ts',
  'tests/postgres/proof.test.ts',
  'tests/postgres/stopped.test.ts',
  'tests/postgres/torture.test.ts',
  'tests/postgres/upgrade.test.ts',
  'tests/postgres/wrong-clock.test.ts',
];

// Most of these tests wait for processes, leases and timeouts: more workers than cores keep the cores busy.
const waiting = { maxWorkers: 3, sequence: { groupOrder: 1 } };
const setupFiles = ['tests/support/run-hooks.ts'];
const postgres = ['tests/postgres/start-server.ts'];

export default defineConfig({
  test: {
    // Keeps transformed modules between runs.
    experimental: { fsModuleCache: true, fsModuleCachePath: '.cache/vitest' },
    projects: [
      {
        test: {
          expect,
          setupFiles,
          name: 'unit',
          // Test files share a process: starting one for each file took half of the CPU time. Helpers therefore
          // register their cleanup in tests/support/hooks.ts, and mocks and stubs end with their test.
          isolate: false,
          restoreMocks: true,
          unstubEnvs: true,
          testTimeout: 30_000,
          maxWorkers: 3,
          sequence: { groupOrder: 0 },
          include: ['tests/**/*.test.ts'],
          exclude: [
            ...PROGRAMS,
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
          setupFiles,
          name: 'programs',
          include: PROGRAMS,
          testTimeout: 30_000,
          maxWorkers: 3,
          sequence: { groupOrder: 0 },
        },
      },
      // Starts processes, servers and engines; damages disks, databases and streams.
      {
        test: {
          ...waiting,
          expect,
          setupFiles,
          name: 'slow',
          include: ['slow', 'stand-ins', 'security'].map((folder) => `tests/${folder}/**/*.test.ts`),
          exclude: LONG,
          testTimeout: 120_000,
          hookTimeout: 60_000,
        },
      },
      // The shared store and its hosts, on a real PostgreSQL that the global setup starts.
      {
        test: {
          ...waiting,
          expect,
          setupFiles,
          name: 'postgres',
          include: ['tests/postgres/**/*.test.ts'],
          exclude: LONG,
          globalSetup: postgres,
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      {
        test: {
          expect,
          setupFiles,
          name: 'long',
          include: LONG,
          globalSetup: postgres,
          testTimeout: 120_000,
          hookTimeout: 60_000,
          maxWorkers: 2,
          sequence: { groupOrder: 2 },
        },
      },
      // The console in a real browser; one file at a time, so that its measurements are comparable.
      {
        test: {
          expect,
          setupFiles,
          name: 'browser',
          include: ['tests/browser/**/*.test.ts'],
          testTimeout: 60_000,
          hookTimeout: 60_000,
          maxWorkers: 1,
          sequence: { groupOrder: 3 },
        },
      },
      // The real CLIs, which `npm run test:engines` installs first.
      {
        test: {
          expect,
          setupFiles,
          name: 'engines',
          include: ['tests/engines-real/**/*.test.ts'],
          testTimeout: 180_000,
          // A test with 50 runs ends as many engines.
          hookTimeout: 60_000,
          maxWorkers: 2,
          sequence: { groupOrder: 4 },
        },
      },
    ],
  },
});

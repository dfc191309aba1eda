import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    projects: [
      { test: { name: 'unit', include: ['tests/**/*.test.ts'], exclude: ['tests/slow/**', 'tests/stand-ins/**'] } },
      { test: { name: 'slow', include: ['tests/slow/**/*.test.ts', 'tests/stand-ins/**/*.test.ts'], testTimeout: 120_000 } },
    ],
  },
});

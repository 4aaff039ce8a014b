import { resolve } from 'node:path';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    root: resolve(import.meta.dirname, '..'),
    include: ['e2e/src/**/*.e2e.ts'],
    testTimeout: 1_200_000,
    hookTimeout: 120_000,
    // Each test owns a whole stack of processes: one at a time.
    fileParallelism: false,
    pool: 'forks',
  },
});

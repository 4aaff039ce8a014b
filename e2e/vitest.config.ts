import { resolve } from 'node:path';
import { defineConfig } from 'vitest/config';

/** `npm run e2e -- s3` names what to run; without a name, everything that needs no server of its own but the embedded stack and Kafka. */
const isNamed = process.argv.slice(2).some((word, index, words) => {
  const isValueOfFlag = words[index - 1] === '--config';
  return word !== 'run' && !word.startsWith('-') && !isValueOfFlag;
});

export default defineConfig({
  test: {
    root: resolve(import.meta.dirname, '..'),
    include: ['e2e/src/**/*.e2e.ts'],
    // Stores and services to be fetched and started: too slow for every run of the gate.
    exclude: isNamed ? [] : ['e2e/src/servers/**'],
    testTimeout: 1_200_000,
    hookTimeout: 120_000,
    // Each test owns a whole stack of processes: one at a time.
    fileParallelism: false,
    pool: 'forks',
  },
});

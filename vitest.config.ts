import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['{apps,libs,tools}/*/src/**/*.{test,prop,sim}.ts', 'e2e/src/sim/**/*.sim.ts', 'examples/**/*.test.ts'],
    // Generous: what is slow is the machine, and what hangs is told apart all the same.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 30_000, interval: 20 } },
    pool: 'forks',
  },
});

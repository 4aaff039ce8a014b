export { seeds, seedsTimeoutMs, withSeed } from './seeds.ts';
export { type Unreliability, unreliable } from './simulated-process.ts';

import { resolve } from 'node:path';
import { checkLayers } from './check.ts';

const errors = checkLayers(resolve(import.meta.dirname, '../../..'));
for (const error of errors) console.error(error);
console.log(`layers: ${errors.length} errors`);
process.exitCode = errors.length === 0 ? 0 : 1;

import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { errorDocs } from './error-docs.ts';

writeFileSync(resolve(import.meta.dirname, '../../../docs/errors.md'), errorDocs());

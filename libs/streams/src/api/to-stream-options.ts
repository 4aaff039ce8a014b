import type { Codec } from '@millrace/state';
import type { OperatorOptions } from './process.ts';

export interface ToStreamOptions<U> extends OperatorOptions {
  /** How the results are written between threads; default msgpack. */
  readonly codec?: Codec<U>;
}

import type { WatermarkStrategy } from './watermarks.ts';

export interface FromOptions<T> {
  readonly uid?: string;
  /** Event time of a record in epoch milliseconds; without it records have time 0 and only the end moves time. */
  readonly timestamp?: (record: T) => number;
  readonly watermarks?: WatermarkStrategy<NoInfer<T>>;
}

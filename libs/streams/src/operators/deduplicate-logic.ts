import { bool, float64, type ValueHandle, value } from '@millrace/state';
import type { KeyedLogic } from '../api/process.ts';
import type { DeduplicateOptions } from '../api/ranking.ts';
import { goOn } from './go-on.ts';
import { ttlOption } from './join-logic.ts';

/** One small value per key: that it has been seen, or the time of the newest record. */
export function deduplicateLogic<T>(options: DeduplicateOptions<T>): KeyedLogic {
  const ttl = ttlOption(options);
  if (options.keep === 'last') {
    return {
      shape: { newestMs: value(float64, { ttl }) },
      onRecord: (record, _input, ctx) => {
        const newest = ctx.state['newestMs'] as unknown as ValueHandle<number>;
        return goOn(newest.get(), (newestMs) => {
          if (newestMs !== undefined && ctx.timestampMs < newestMs) return;
          newest.set(ctx.timestampMs);
          ctx.emit(record);
        });
      },
    };
  }
  return {
    shape: { seen: value(bool, { ttl }) },
    onRecord: (record, _input, ctx) => {
      const seen = ctx.state['seen'] as unknown as ValueHandle<boolean>;
      return goOn(seen.get(), (known) => {
        if (known === true) return;
        seen.set(true);
        ctx.emit(record);
      });
    },
  };
}

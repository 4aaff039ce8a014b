import type { Codec } from '@millrace/state';
import { msgpack } from '@millrace/state';

/** Names a side output and fixes the type of its records. */
export interface SideTag<T> {
  readonly name: string;
  readonly codec: Codec<T>;
}

/** A tag to emit to with `ctx.side(tag, value)` and to read with `stream.sideOutput(tag)`. */
export function sideTag<T>(name: string, codec: Codec<T> = msgpack<T>()): SideTag<T> {
  return { name, codec };
}

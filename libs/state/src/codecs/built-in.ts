import type { Codec } from '../codec.ts';
import { keyCodec } from '../keys/key-codec.ts';
import { msgpack } from './msgpack.ts';
import { bool, bytes, float64, int64, json, string } from './primitives.ts';

/** Codecs that a format names without parameters. */
export const builtInCodecs: ReadonlyMap<string, Codec<unknown>> = new Map(
  [int64, float64, bool, string, bytes, json(), msgpack(), keyCodec].map((codec) => [
    codec.format,
    codec as Codec<unknown>,
  ]),
);

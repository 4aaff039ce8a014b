/** Byte strings in one arena: item `i` is `bytes[offsets[i], offsets[i + 1])`. The gRPC form is the same bytes. */
export interface PackedKeys {
  readonly count: number;
  readonly bytes: Uint8Array;
  readonly offsets: Uint32Array;
}

/** As {@link PackedKeys}; `present[i]` is 0 where the key is absent. */
export interface PackedValues {
  readonly count: number;
  readonly bytes: Uint8Array;
  readonly offsets: Uint32Array;
  readonly present: Uint8Array;
}

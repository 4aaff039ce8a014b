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

function pack(items: readonly (Uint8Array | undefined)[]): PackedKeys {
  const offsets = new Uint32Array(items.length + 1);
  let length = 0;
  for (let i = 0; i < items.length; i++) {
    length += items[i]?.length ?? 0;
    offsets[i + 1] = length;
  }
  const bytes = new Uint8Array(length);
  for (let i = 0; i < items.length; i++) {
    const item = items[i];
    if (item !== undefined) bytes.set(item, offsets[i]);
  }
  return { count: items.length, bytes, offsets };
}

export function packKeys(keys: readonly Uint8Array[]): PackedKeys {
  return pack(keys);
}

/** `undefined` marks an absent key. */
export function packValues(values: readonly (Uint8Array | undefined)[]): PackedValues {
  return { ...pack(values), present: Uint8Array.from(values, (value) => (value === undefined ? 0 : 1)) };
}

/** A view of item `index`. */
export function packedItem(packed: PackedKeys, index: number): Uint8Array {
  return packed.bytes.subarray(packed.offsets[index], packed.offsets[index + 1]);
}

/** A view of value `index`; undefined when the key was absent. */
export function packedValue(packed: PackedValues, index: number): Uint8Array | undefined {
  return packed.present[index] === 0 ? undefined : packedItem(packed, index);
}

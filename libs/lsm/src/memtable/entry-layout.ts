/**
 * An entry of a memtable is eight 32-bit words, one half of a cache line. The expiry is a float64 over the last two:
 * element `entry * 4 + 3` of a Float64Array on the same buffer. Keys and values lie in the arena.
 */
export const entryWords = 8;
export const entryBytes = entryWords * 4;
export const hashWord = 0;
export const keyStartWord = 1;
export const keyLengthWord = 2;
export const valueStartWord = 3;
/** {@link tombstone} for a deleted key. */
export const valueLengthWord = 4;
/** Bytes of the arena that belong to the value: an overwrite that fits is done in place. */
export const valueRoomWord = 5;
export const expiryIndex = 3;
export const expiryStride = 4;

export const tombstone = -1;

/** The sort packs an entry's position into 21 bits beside 32 bits of key in one float64. */
export const entriesPerMemtableMax = 2 ** 21;

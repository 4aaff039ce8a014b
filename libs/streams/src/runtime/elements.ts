/** What travels in a channel, one byte each; the numbers are the wire's (FRAMES.md). */
export const elementKind = { none: 0, record: 1, watermark: 2, status: 3, barrier: 4, end: 5, replayed: 6 } as const;

export type ElementKind = (typeof elementKind)[keyof typeof elementKind];

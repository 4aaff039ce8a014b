import { SeededRandom } from '@millrace/kernel';

/** Test traffic: what frame `index` of a channel is, so that a receiver in any thread or process can check it. */
export interface Traffic {
  readonly seed: number;
  readonly edges: readonly number[];
  /** Frames per channel. */
  readonly frames: number;
  readonly bytesMax: number;
  readonly windowBytes: number;
  /** Slots that read nothing until told to. */
  readonly stalled?: readonly number[];
  /** What a broken sender takes as its credit instead of the window. */
  readonly ignoredCreditBytes?: number;
}

export interface Place {
  readonly from: number;
  readonly to: number;
  readonly edge: number;
}

function sizeOf(traffic: Traffic, { from, to, edge }: Place, index: number): number {
  const random = new SeededRandom(traffic.seed ^ (from * 7919 + to * 104729 + edge * 1299709 + index * 15485863));
  const kind = random.below(8);
  if (kind === 0) return 0;
  if (kind < 5) return random.below(Math.min(traffic.bytesMax, 4096) + 1);
  return random.below(traffic.bytesMax + 1);
}

export function makeFrame(traffic: Traffic, place: Place, index: number): Uint8Array<ArrayBuffer> {
  const frame = new Uint8Array(sizeOf(traffic, place, index));
  fill(frame, place, index);
  return frame;
}

function fill(frame: Uint8Array, place: Place, index: number): void {
  let x = (index * 2654435761 + place.from * 97 + place.to * 89 + place.edge * 83) >>> 0;
  for (let i = 0; i < frame.length; i += 1 + (i >>> 3)) {
    frame[i] = x;
    x = (x * 1664525 + 1013904223) >>> 0;
  }
}

/** What is wrong with the frame that should be the channel's `index`-th; undefined when nothing is. */
export function faultOf(traffic: Traffic, place: Place, index: number, frame: Uint8Array): string | undefined {
  const right = makeFrame(traffic, place, index);
  const where = `frame ${index} of ${place.from}→${place.to} edge ${place.edge}`;
  if (right.length !== frame.length) return `${where}: ${frame.length} bytes instead of ${right.length}`;
  return Buffer.compare(right, frame) === 0 ? undefined : `${where}: other bytes`;
}

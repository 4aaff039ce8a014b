import { assert } from '@millrace/kernel';

/** A channel: an ordered stream of frames from one slot to another for one edge of the job graph. */
export interface Channel {
  readonly fromSlot: number;
  readonly toSlot: number;
  readonly edge: number;
}

const limit = 0x1_0000;

/** A channel as one number, for maps on the path of every frame. */
export function channelKey(fromSlot: number, toSlot: number, edge: number): number {
  assert(fromSlot < limit && toSlot < limit && edge < limit, 'channel: slot or edge beyond 65535');
  return (fromSlot * limit + toSlot) * limit + edge;
}

export function channelOf(key: number): Channel {
  const pair = Math.floor(key / limit);
  return { fromSlot: Math.floor(pair / limit), toSlot: pair % limit, edge: key % limit };
}

import { assert } from '@millrace/kernel';
import type { WireCodec } from '../rpc/service-definition.ts';

/**
 * `millrace.v1.Frame` by hand: the same wire as the generated code, without its copies and objects. Encoding copies the
 * payload once, into the buffer that is handed to gRPC; decoding gives a view.
 */
export interface RawFrame {
  readonly fromSlot: number;
  readonly toSlot: number;
  readonly edge: number;
  readonly payload: Uint8Array;
}

const tagFromSlot = (1 << 3) | 0;
const tagToSlot = (2 << 3) | 0;
const tagEdge = (3 << 3) | 0;
const tagPayload = (4 << 3) | 2;

function varintBytes(value: number): number {
  let n = 1;
  for (let v = value >>> 7; v !== 0; v >>>= 7) n++;
  return n;
}

function putVarint(out: Buffer, at: number, value: number): number {
  let p = at;
  let v = value >>> 0;
  while (v > 0x7f) {
    out[p++] = (v & 0x7f) | 0x80;
    v >>>= 7;
  }
  out[p++] = v;
  return p;
}

/** Bytes of a uint32 field; proto3 leaves zeros out. */
function fieldBytes(value: number): number {
  return value === 0 ? 0 : 1 + varintBytes(value);
}

function putField(out: Buffer, at: number, tag: number, value: number): number {
  if (value === 0) return at;
  out[at] = tag;
  return putVarint(out, at + 1, value);
}

export function encodeFrame(frame: RawFrame): Buffer {
  const out = Buffer.allocUnsafe(messageBytes(frame));
  putFrame(frame, out, 0);
  return out;
}

function messageBytes({ fromSlot, toSlot, edge, payload: { byteLength } }: RawFrame): number {
  const head = fieldBytes(fromSlot) + fieldBytes(toSlot) + fieldBytes(edge);
  return head + (byteLength === 0 ? 0 : 1 + varintBytes(byteLength) + byteLength);
}

function putFrame({ fromSlot, toSlot, edge, payload }: RawFrame, out: Buffer, start: number): void {
  let at = putField(out, start, tagFromSlot, fromSlot);
  at = putField(out, at, tagToSlot, toSlot);
  at = putField(out, at, tagEdge, edge);
  if (payload.byteLength === 0) return;
  out[at] = tagPayload;
  out.set(payload, putVarint(out, at + 1, payload.byteLength));
}

/**
 * A frame that writes itself where grpc-js wants it. Its server asks a serialised message for its length and has it copied
 * behind the five bytes that go before each message: with a Buffer that would be a second copy and a second allocation
 * of every frame. Only for what a server sends.
 */
class UnwrittenFrame {
  readonly byteLength: number;
  readonly #frame: RawFrame;

  constructor(frame: RawFrame) {
    this.#frame = frame;
    this.byteLength = messageBytes(frame);
  }

  copy(target: Buffer, start: number): void {
    putFrame(this.#frame, target, start);
  }
}

/** Reads one frame; `payload` is a view of `bytes`. Unknown fields are passed over, as protobuf asks. */
export function decodeFrame(bytes: Uint8Array): RawFrame {
  const reader = new Reader(bytes);
  let fromSlot = 0;
  let toSlot = 0;
  let edge = 0;
  let payload: Uint8Array = new Uint8Array();
  while (reader.at < bytes.byteLength) {
    const tag = reader.varint();
    if (tag === tagFromSlot) fromSlot = reader.varint();
    else if (tag === tagToSlot) toSlot = reader.varint();
    else if (tag === tagEdge) edge = reader.varint();
    else if (tag === tagPayload) payload = reader.view(reader.varint());
    else reader.skip(tag & 7);
  }
  return { fromSlot, toSlot, edge, payload };
}

/** For answers of a server and their readers. */
export const frameCodec: WireCodec<RawFrame> = {
  serialize: (frame) => new UnwrittenFrame(frame) as unknown as Buffer,
  deserialize: decodeFrame,
};

class Reader {
  readonly #bytes: Uint8Array;
  at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  /** A varint as uint32; higher bits, which no field of a frame has, are dropped as protobuf does. */
  varint(): number {
    let value = 0;
    for (let shift = 0; shift < 70; shift += 7) {
      assert(this.at < this.#bytes.byteLength, 'frame: cut short');
      const byte = this.#bytes[this.at++] as number;
      if (shift < 32) value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value >>> 0;
    }
    throw new RangeError('frame: varint too long');
  }

  view(length: number): Uint8Array {
    assert(length <= this.#bytes.byteLength - this.at, 'frame: cut short');
    const start = this.at;
    this.at += length;
    return new Uint8Array(this.#bytes.buffer, this.#bytes.byteOffset + start, length);
  }

  skip(wireType: number): void {
    if (wireType === 0) this.varint();
    else if (wireType === 1) this.view(8);
    else if (wireType === 2) this.view(this.varint());
    else if (wireType === 5) this.view(4);
    else throw new RangeError(`frame: wire type ${wireType}`);
  }
}

import { assert } from '@millrace/kernel';
import type { TraceContext } from '@millrace/telemetry';
import type { StoredWatermark } from './operator.ts';

/**
 * Where elements were when a barrier overtook them: read by nobody yet (`in`: waiting at the reader; `out`: waiting at
 * the writer) or between two operators of a chain (`chain`). Older parts come first: of one channel, `in` before `out`.
 */
export type InFlightPlace = 'in' | 'out' | 'chain';

/** One channel's share of what a barrier overtook, while it is in memory. */
export interface InFlightChannel {
  readonly place: InFlightPlace;
  /** `edgeName` of its edge. */
  readonly edge: string;
  /** The format of the edge's codec. */
  readonly format: string;
  /** Subtasks of the checkpoint's parallelism. */
  readonly from: number;
  readonly to: number;
  /** What its reader knew of event time here, before these elements; of `in` only. */
  readonly watermarkMs: number;
  readonly idle: boolean;
  /** Whole elements in order (FRAMES.md): records, watermarks, status. */
  readonly elements: Uint8Array;
}

/** A channel as a checkpoint lists it; its elements are `data[offset, offset + length)`. */
export interface InFlightEntry {
  readonly place: InFlightPlace;
  readonly edge: string;
  readonly format: string;
  readonly from: number;
  readonly to: number;
  readonly watermarkMs?: StoredWatermark;
  readonly idle?: boolean;
  readonly offset: number;
  readonly length: number;
}

/** What was under way around one chain of a subtask. Plain JSON. */
export interface InFlight {
  readonly channels: readonly InFlightEntry[];
  /** Base64; absent when there is none, or when it lies in a file. */
  readonly data?: string;
  readonly file?: InFlightFile;
}

/** A file that holds elements, and the objects by which a checkpoint holds it. Plain JSON. */
export interface InFlightFile {
  readonly id: string;
  readonly sizeBytes: number;
  readonly crc32: number;
  readonly holders: readonly string[];
}

/** Names what is written in a round: as the snapshot of a table is named. */
export interface InFlightFileName {
  readonly checkpoint: number;
  readonly operator: string;
  readonly subtask: number;
}

/** The file system as a slot sees it when it stores what a barrier overtook. */
export interface InFlightFiles {
  /** Durable and held when it resolves. */
  write(name: InFlightFileName, data: Uint8Array, parent?: TraceContext): Promise<InFlightFile>;
  read(file: InFlightFile): Promise<Uint8Array>;
}

/** Up to here elements are part of the snapshot's JSON: an object of their own would cost more. */
const inlineBytesMax = 16 * 1024;

/** Stores what a barrier overtook. Undefined when nothing is to be told. */
export async function storeInFlight(
  channels: readonly InFlightChannel[],
  to: {
    readonly files: InFlightFiles | undefined;
    readonly name: InFlightFileName;
    readonly parent?: TraceContext | undefined;
  },
): Promise<InFlight | undefined> {
  if (channels.length === 0) return undefined;
  const entries: InFlightEntry[] = [];
  let offset = 0;
  for (const { place, edge, format, from, to: toSubtask, watermarkMs, idle, elements } of channels) {
    const time = place === 'in' ? { ...inJson(watermarkMs), ...(idle ? { idle } : {}) } : {};
    entries.push({ place, edge, format, from, to: toSubtask, ...time, offset, length: elements.length });
    offset += elements.length;
  }
  if (offset === 0) return { channels: entries };
  const data = Buffer.concat(channels.map((channel) => channel.elements));
  if (offset <= inlineBytesMax || to.files === undefined) return { channels: entries, data: data.toString('base64') };
  return { channels: entries, file: await to.files.write(to.name, data, to.parent) };
}

/** The elements of all entries, as `InFlightEntry` cuts them. */
export async function readInFlight(inFlight: InFlight, files: InFlightFiles | undefined): Promise<Uint8Array> {
  if (inFlight.file === undefined) return Buffer.from(inFlight.data ?? '', 'base64');
  assert(files !== undefined, 'this slot has no files to read what was in flight from');
  return files.read(inFlight.file);
}

export function inFlightBytes(inFlight: InFlight | undefined): number {
  return inFlight?.channels.reduce((sum, { length }) => sum + length, 0) ?? 0;
}

function inJson(watermarkMs: number): { readonly watermarkMs?: StoredWatermark } {
  if (watermarkMs === Number.NEGATIVE_INFINITY) return {};
  return { watermarkMs: watermarkMs === Number.POSITIVE_INFINITY ? 'end' : watermarkMs };
}

/** The watermark of an entry; -∞ before the first. */
export function entryWatermarkMs({ watermarkMs }: InFlightEntry): number {
  if (watermarkMs === undefined) return Number.NEGATIVE_INFINITY;
  return watermarkMs === 'end' ? Number.POSITIVE_INFINITY : watermarkMs;
}

import { ByteWriter, containsKeyGroup, keyGroupOf, keyGroupRange, MillraceError } from '@millrace/kernel';
import { type Codec, checkCompatible, decoderFor } from '@millrace/state';
import type { Edge, JobGraph } from '../graph/job-graph.ts';
import { edgeName } from './edge-name.ts';
import { elementKind } from './elements.ts';
import { FrameReader } from './frame-reader.ts';
import { entryWatermarkMs, type InFlight, type InFlightEntry, inFlightBytes, readInFlight } from './in-flight.ts';
import type { Replay } from './input-gate.ts';
import { ReplayChannel } from './replay-channel.ts';
import type { SlotContext } from './slot.ts';

/*
 * What a barrier overtook goes on in the attempt that restores it, before any new element:
 *
 * - A task first replays the channels that its subtask had, each with the event time that its reader knew, merged as they
 *   were merged then. Event time never falls, so that what was late is late again.
 * - At another parallelism, records of a keyed edge go to the new owners of their key groups; a channel of any other edge
 *   goes whole to one subtask, so that its order is kept. Time then goes no further than all channels of all old subtasks
 *   had come, for other subtasks replay the rest.
 * - Sources begin with `replayed` marks. A task reads no channel beyond one before it has that of all of them, and passes it
 *   on when it has drained. So nothing that was read after the restore meets an operator before what is replayed, by
 *   whatever way it comes: sources may deal their splits anew, and channels may have moved. At another parallelism there is
 *   a mark for each place in which elements were ({@link restoreStages}): they may have moved apart, too.
 */

/** Where this subtask goes on. */
export interface RestoredInFlight {
  /** The parallelism is what it was: everything goes on where it was. */
  readonly unchanged: boolean;
  /** What the task whose head these edges enter reads first. */
  replay(inputs: readonly Edge[]): Replay;
  /** Calls back with each record that waited before the operator that `edge` leads to, in order. */
  eachWaiting(edge: Edge, visit: (value: unknown, timestampMs: number) => void): void;
}

interface Loaded {
  readonly entry: InFlightEntry;
  readonly edge: Edge;
  readonly elements: Uint8Array;
}

/**
 * Reads what was in flight for this subtask; undefined when nothing was in flight anywhere in the job, which every
 * subtask finds alike. Throws `state-incompatible` when the job has lost the edge of some of it, or its codec cannot
 * read it.
 */
export async function restoreInFlight(graph: JobGraph, context: SlotContext): Promise<RestoredInFlight | undefined> {
  const { restore = [], subtask, parallelism } = context;
  const stored = restore.flatMap(({ inFlight }) => inFlight ?? []);
  if (stored.every((one) => inFlightBytes(one) === 0)) return undefined;
  const place = { subtask, parallelism, parallelismBefore: 1 + Math.max(...restore.map((part) => part.subtask)) };
  const edges = new Map(graph.edges.map((edge) => [edgeName(graph, edge), edge]));
  const loaded: Loaded[] = [];
  for (const inFlight of stored) loaded.push(...(await load(inFlight, edges, { ...place, context })));
  const unchanged = place.parallelismBefore === parallelism;
  return {
    unchanged,
    replay: (inputs) => replayOf(inputs, loaded, { ...place, unchanged, context }),
    eachWaiting: (edge, visit) => {
      for (const one of loaded) if (one.edge === edge && one.entry.place === 'chain') eachRecord(one, visit);
    },
  };
}

interface Place {
  readonly subtask: number;
  readonly parallelism: number;
  readonly parallelismBefore: number;
  readonly context: SlotContext;
}

async function load(inFlight: InFlight, edges: ReadonlyMap<string, Edge>, place: Place): Promise<Loaded[]> {
  let data: Uint8Array | undefined;
  const loaded: Loaded[] = [];
  for (const entry of inFlight.channels) {
    const edge = edges.get(entry.edge);
    if (edge === undefined) {
      if (entry.length === 0 || place.context.allowDroppedState === true) continue;
      throw lost(entry);
    }
    const isOwn = comesHere(entry, edge, place);
    if (isOwn && entry.length > 0) {
      checkCompatible(entry.format, edge.codec.format);
      data ??= await readInFlight(inFlight, place.context.inFlightFiles);
    }
    const elements = isOwn ? (data?.subarray(entry.offset, entry.offset + entry.length) ?? nothing) : nothing;
    loaded.push({ entry, edge, elements });
  }
  return loaded;
}

/** Whether this subtask replays a channel, or a share of it. */
function comesHere({ to }: InFlightEntry, { partitioning }: Edge, place: Place): boolean {
  const { subtask, parallelism, parallelismBefore, context } = place;
  if (parallelism === parallelismBefore) return to === subtask;
  if (partitioning.kind === 'broadcast') return to === subtask % parallelismBefore;
  if (partitioning.kind !== 'hash') return to % parallelism === subtask;
  const before = keyGroupRange(to, parallelismBefore, context.maxParallelism);
  return before.start <= context.keyGroups.end && context.keyGroups.start <= before.end;
}

function replayOf(
  inputs: readonly Edge[],
  loaded: readonly Loaded[],
  place: Place & { readonly unchanged: boolean },
): Replay {
  const channels: ReplayChannel[] = [];
  const readers = new Set<number>();
  let othersMs = Number.POSITIVE_INFINITY;
  for (const one of loaded) {
    const { entry, edge } = one;
    if (entry.place !== 'in' || !inputs.includes(edge)) continue;
    readers.add(entry.to);
    const [watermarkMs, idle] = [entryWatermarkMs(entry), entry.idle === true];
    if (!comesHere(entry, edge, place)) {
      if (!idle) othersMs = Math.min(othersMs, watermarkMs);
      continue;
    }
    const behind = loaded.filter(({ entry: other, edge: otherEdge }) => {
      return otherEdge === edge && other.place === 'out' && other.from === entry.from && other.to === entry.to;
    });
    const elements = Buffer.concat([one, ...behind].map((part) => part.elements));
    const keep = place.unchanged ? undefined : keepOf(edge, place.context);
    channels.push(new ReplayChannel({ input: edge.input, watermarkMs, idle, elements, codec: codecOf(one), keep }));
  }
  if (place.unchanged) return { channels, watermarkMsMax: Number.POSITIVE_INFINITY };
  const allKnown = readers.size === place.parallelismBefore;
  return { channels, watermarkMsMax: allKnown ? othersMs : Number.NEGATIVE_INFINITY };
}

function keepOf({ partitioning }: Edge, context: SlotContext): ((value: unknown) => boolean) | undefined {
  if (partitioning.kind !== 'hash') return undefined;
  const { keyGroups, maxParallelism } = context;
  const scratch = new ByteWriter(64);
  return (value) => {
    scratch.position = 0;
    partitioning.keyCodec.encode(partitioning.key(value as never) as never, scratch);
    return containsKeyGroup(keyGroups, keyGroupOf(scratch.bytes, 0, scratch.position, maxParallelism));
  };
}

function eachRecord(one: Loaded, visit: (value: unknown, timestampMs: number) => void): void {
  const reader = new FrameReader(codecOf(one));
  reader.start(one.elements);
  for (let kind = reader.next(); kind !== elementKind.none; kind = reader.next()) {
    if (kind === elementKind.record) visit(reader.value, reader.timestampMs);
  }
}

/** Reads what an older version of the codec wrote. */
function codecOf({ edge, entry }: Loaded): Codec<never> {
  return { ...edge.codec, decode: decoderFor(edge.codec, entry.format) };
}

function lost({ edge, from, length }: InFlightEntry): MillraceError {
  const text = `the checkpoint does not fit the job: it holds ${length} bytes of records that were on their way along the edge ${edge}, which the job does not have`;
  return new MillraceError(
    'state-incompatible',
    `${text}. Restore it with the job that made it and take an aligned checkpoint, or set allowDroppedState`,
    {
      details: { edge, from },
    },
  );
}

const nothing = new Uint8Array(0);

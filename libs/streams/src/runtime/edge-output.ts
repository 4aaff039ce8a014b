import { ByteWriter, keyGroupOf, type MaybePromise, MillraceError, subtaskOfKeyGroup } from '@millrace/kernel';
import type { Codec } from '@millrace/state';
import type { CustomPartitioning, Edge, Partitioning } from '../graph/job-graph.ts';
import type { OutputChannel } from './output-channel.ts';
import type { Barrier } from './slot.ts';

/** Where an operator's records can go: another operator of the chain, or an edge. */
export interface Target {
  record(value: unknown, timestampMs: number): void;
  watermark(watermarkMs: number): void;
  status(idle: boolean): void;
}

/** One edge of one subtask: its channels, and which of them gets a record. What is no record goes to all. */
export abstract class EdgeOutput implements Target {
  /** Index in the graph's `edges`. */
  readonly edge: number;
  readonly channels: readonly OutputChannel[];

  constructor(edge: number, channels: readonly OutputChannel[]) {
    this.edge = edge;
    this.channels = channels;
  }

  abstract record(value: unknown, timestampMs: number): void;

  watermark(watermarkMs: number): void {
    for (const channel of this.channels) channel.watermark(watermarkMs);
  }

  status(idle: boolean): void {
    for (const channel of this.channels) channel.status(idle);
  }

  /** The elements that the barrier overtook at this end, by channel. */
  barrier(barrier: Barrier): ReadonlyArray<MaybePromise<Uint8Array>> {
    return this.channels.map((channel) => channel.barrier(barrier));
  }

  replayed(): void {
    for (const channel of this.channels) channel.replayed();
  }

  end(): void {
    for (const channel of this.channels) channel.end();
  }
}

class SingleOutput extends EdgeOutput {
  readonly #channel: OutputChannel;

  constructor(edge: number, channels: readonly OutputChannel[]) {
    super(edge, channels);
    this.#channel = channels[0] as OutputChannel;
  }

  record(value: unknown, timestampMs: number): void {
    this.#channel.record(value, timestampMs);
  }
}

class HashOutput extends EdgeOutput {
  readonly #key: (value: unknown) => unknown;
  readonly #codec: Codec<unknown>;
  readonly #maxParallelism: number;
  readonly #scratch = new ByteWriter(64);

  constructor(
    edge: number,
    channels: readonly OutputChannel[],
    partitioning: Extract<Partitioning, { kind: 'hash' }>,
    maxParallelism: number,
  ) {
    super(edge, channels);
    this.#key = partitioning.key as (value: unknown) => unknown;
    this.#codec = partitioning.keyCodec as Codec<unknown>;
    this.#maxParallelism = maxParallelism;
  }

  record(value: unknown, timestampMs: number): void {
    const scratch = this.#scratch;
    scratch.position = 0;
    this.#codec.encode(this.#key(value), scratch);
    const group = keyGroupOf(scratch.bytes, 0, scratch.position, this.#maxParallelism);
    const subtask = subtaskOfKeyGroup(group, this.channels.length, this.#maxParallelism);
    (this.channels[subtask] as OutputChannel).record(value, timestampMs);
  }
}

class RebalanceOutput extends EdgeOutput {
  #next: number;

  constructor(edge: number, channels: readonly OutputChannel[], first: number) {
    super(edge, channels);
    this.#next = first;
  }

  record(value: unknown, timestampMs: number): void {
    const channel = this.channels[this.#next] as OutputChannel;
    this.#next = this.#next + 1 === this.channels.length ? 0 : this.#next + 1;
    channel.record(value, timestampMs);
  }
}

class BroadcastOutput extends EdgeOutput {
  record(value: unknown, timestampMs: number): void {
    for (const channel of this.channels) channel.record(value, timestampMs);
  }
}

class CustomOutput extends EdgeOutput {
  readonly #choose: (value: unknown, parallelism: number) => number;

  constructor(edge: number, channels: readonly OutputChannel[], { choose }: CustomPartitioning) {
    super(edge, channels);
    this.#choose = choose as (value: unknown, parallelism: number) => number;
  }

  record(value: unknown, timestampMs: number): void {
    (this.channels[chosen(this.#choose, value, this.channels.length)] as OutputChannel).record(value, timestampMs);
  }
}

/** The subtask that a job's function chooses; `bad-argument` when there is none of this number. */
export function chosen<T>(choose: (value: T, parallelism: number) => number, value: T, parallelism: number): number {
  const subtask = choose(value, parallelism);
  if (Number.isInteger(subtask) && subtask >= 0 && subtask < parallelism) return subtask;
  throw new MillraceError('bad-argument', `partitionBy chose ${subtask}; it has to be 0 to ${parallelism - 1}`);
}

/** `channels` by subtask of the next operator; one channel only for `forward`. */
export function edgeOutput(
  { id, partitioning }: Pick<Edge, 'id' | 'partitioning'>,
  channels: readonly OutputChannel[],
  place: { subtask: number; maxParallelism: number },
): EdgeOutput {
  if (channels.length === 1) return new SingleOutput(id, channels);
  switch (partitioning.kind) {
    case 'forward':
      return new SingleOutput(id, channels);
    case 'hash':
      return new HashOutput(id, channels, partitioning, place.maxParallelism);
    case 'rebalance':
      return new RebalanceOutput(id, channels, place.subtask % channels.length);
    case 'custom':
      return new CustomOutput(id, channels, partitioning);
    case 'broadcast':
      return new BroadcastOutput(id, channels);
  }
}

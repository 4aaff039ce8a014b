/**
 * The `StateStore` port over gRPC: tables live in a state-service. One connection for a store, one stream for a table. A
 * broken stream fails every later call of its table with kind `retry`, and the attempt restarts from the last
 * checkpoint: nothing is reconnected, for the service has dropped the table's unsaved writes with the stream.
 */
import { type Clock, MillraceError } from '@millrace/kernel';
import {
  bidiClient,
  messageCodec,
  type RpcOptions,
  StateService,
  type TableResponse,
  TableResponseSchema,
} from '@millrace/proto';
import type { SnapshotHandle, StateStore, StateTable, TableSpec } from '@millrace/state';
import type { Histogram, Telemetry, TraceContext } from '@millrace/telemetry';
import { defaultRemoteLimits, type RemoteLimits } from './limits.ts';
import { RemoteStateTable } from './remote-table.ts';
import { type TableClient, TableStream } from './stream/table-stream.ts';
import { itemBytesMax, tooLarge } from './wire/split.ts';

export interface RemoteStoreOptions {
  /** host:port of a state-service. */
  readonly address: string;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly limits?: Partial<RemoteLimits>;
  readonly rpc?: RpcOptions;
}

/** A busy service may be silent for a second or two; a frozen one is noticed all the same. */
const keepalive: RpcOptions = { keepaliveTimeMs: 5000, keepaliveTimeoutMs: 5000 };

/** Connects at the first table. */
export function openRemoteStore(options: RemoteStoreOptions): StateStore {
  return new RemoteStateStore(options);
}

class RemoteStateStore implements StateStore {
  readonly #options: RemoteStoreOptions;
  readonly #limits: RemoteLimits;
  readonly #client: TableClient;
  readonly #streams = new Set<TableStream>();
  readonly #tables = new Set<StateTable>();
  readonly #unobserve: () => void;
  readonly #latency: Histogram;
  #name = 'remote';
  #closing: Promise<void> | undefined;

  constructor(options: RemoteStoreOptions) {
    this.#options = options;
    this.#limits = { ...defaultRemoteLimits, ...options.limits };
    const codec = messageCodec(TableResponseSchema) as { serialize: never; deserialize(bytes: Buffer): TableResponse };
    const rpc = { ...keepalive, ...options.rpc };
    this.#client = bidiClient(StateService.method.table, codec, options.address, rpc);
    this.#latency = options.telemetry.metrics.histogram(
      'millrace_state_remote_latency_ms',
      'Time from sending a request to the state-service to its answer',
    );
    this.#unobserve = options.telemetry.metrics.gauge(
      'millrace_state_remote_held_bytes',
      'Requests to the state-service that wait or are not answered',
      () => [...this.#streams].reduce((sum, stream) => sum + stream.heldBytes, 0),
    );
  }

  /**
   * `remote`, until a table is open: then the name of the store behind the service. Its handles carry that name, so that a
   * job can move between an embedded store and the same one behind a service.
   */
  get name(): string {
    return this.#name;
  }

  async openTable(spec: TableSpec, restore: readonly SnapshotHandle[], parent?: TraceContext): Promise<StateTable> {
    if (this.#closing !== undefined) throw new MillraceError('state-table-closed', 'the state store is closed');
    const attributes = { 'millrace.operator': spec.operator, 'millrace.handles': restore.length };
    return this.#options.telemetry.tracer.span('state.remote.open', { parent, attributes }, (span) =>
      this.#open(spec, restore, span.context),
    );
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#unobserve();
    await Promise.all([...this.#tables].map((table) => table.close()));
    await Promise.all([...this.#streams].map((stream) => stream.close()));
    this.#client.close();
  }

  async #open(
    spec: TableSpec,
    restore: readonly SnapshotHandle[],
    parent: TraceContext | undefined,
  ): Promise<StateTable> {
    const value = { spec: JSON.stringify(spec), restore: restore.map((handle) => JSON.stringify(handle)) };
    const payloadBytes = value.restore.reduce((sum, handle) => sum + Buffer.byteLength(handle), value.spec.length);
    if (payloadBytes > itemBytesMax) throw tooLarge(payloadBytes);
    const { address, clock, telemetry } = this.#options;
    const limits = this.#limits;
    const stream = new TableStream({
      client: this.#client,
      address,
      limits,
      clock,
      onAnswered: (request, latencyMs) => this.#latency.record(latencyMs, { request }),
    });
    this.#streams.add(stream);
    try {
      const request = stream.request(
        { case: 'open', value },
        { payloadBytes, timeoutMs: limits.openTimeoutMs, parent },
      );
      const kind = (await request.answer)[0]?.kind;
      if (kind?.case !== 'opened' || kind.value.stats === undefined) {
        throw new MillraceError('unexpected', 'the state-service answered something else to open');
      }
      this.#name = kind.value.store;
      const table = new RemoteStateTable({
        spec,
        stream,
        limits,
        telemetry,
        stats: kind.value.stats,
        onClose: () => {
          this.#tables.delete(table);
          this.#streams.delete(stream);
        },
      });
      this.#tables.add(table);
      return table;
    } catch (error) {
      this.#streams.delete(stream);
      await stream.close();
      throw error;
    }
  }
}

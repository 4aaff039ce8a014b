import { Server, ServerCredentials } from '@grpc/grpc-js';
import { type Clock, MillraceError, sleep } from '@millrace/kernel';
import {
  addBidi,
  addReflection,
  addUnary,
  endWith,
  Health,
  type RpcOptions,
  ServingStatus,
  StateService,
  serverOptions,
  showsToken,
  type WireCodec,
} from '@millrace/proto';
import type { StateStore } from '@millrace/state';
import type { Telemetry } from '@millrace/telemetry';
import { type SessionLimits, TableSession } from './table-session.ts';

export interface ServerLimits extends SessionLimits {
  readonly tablesMax: number;
}

export const defaultServerLimits: ServerLimits = {
  streamBytesMax: 8 * 1024 * 1024,
  scansMax: 256,
  openTimeoutMs: 10_000,
  tablesMax: 256,
};

/** Without it whoever reaches the port may read and write state, in clear. */
export interface ServerSecurity {
  /** PEM. */
  readonly tls?: { readonly cert: Uint8Array; readonly key: Uint8Array } | undefined;
  /** What clients have to show. */
  readonly token?: string | undefined;
}

export interface StateServerOptions {
  /** Closed with the server. */
  readonly store: StateStore;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly limits?: Partial<ServerLimits>;
  readonly rpc?: RpcOptions;
  readonly security?: ServerSecurity;
}

/** Answers are encoded where they are made: their size counts. */
const encoded: WireCodec<Buffer> = { serialize: (bytes) => bytes, deserialize: (bytes) => bytes };

/** A busy client may be silent for a second or two. */
const keepalive: RpcOptions = { keepaliveTimeMs: 5000, keepaliveTimeoutMs: 5000 };

/** The gRPC server of a state-service: any state store, one stream for each of its tables. Answers health checks, too. */
export class StateServer {
  readonly #options: StateServerOptions;
  readonly #limits: ServerLimits;
  readonly #server: Server;
  readonly #sessions = new Set<TableSession>();
  readonly #unobserve: () => void;
  #closing: Promise<void> | undefined;

  constructor(options: StateServerOptions) {
    this.#options = options;
    this.#limits = { ...defaultServerLimits, ...options.limits };
    this.#server = new Server(serverOptions({ ...keepalive, ...options.rpc }));
    const check = async (): Promise<{ status: ServingStatus }> => ({
      status: this.#closing === undefined ? ServingStatus.SERVING : ServingStatus.NOT_SERVING,
    });
    addUnary(this.#server, Health, { check }, options.telemetry.tracer);
    addReflection(this.#server, [StateService, Health]);
    addBidi(this.#server, StateService.method.table, encoded, (stream) => {
      const token = options.security?.token;
      if (token !== undefined && !showsToken(stream.metadata, token)) return endWith(stream, noToken());
      const session = new TableSession(stream, {
        store: options.store,
        clock: options.clock,
        telemetry: options.telemetry,
        limits: this.#limits,
        admit: () => this.#admit(),
      });
      this.#sessions.add(session);
      void session.ended.then(() => this.#sessions.delete(session));
    });
    this.#unobserve = options.telemetry.metrics.gauge(
      'millrace_state_service_tables',
      'Tables that clients hold open',
      () => this.#tables(),
    );
  }

  /** Binds and serves. `address` is host:port, port 0 for any; resolves to the port. */
  listen(address: string): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#server.bindAsync(address, credentialsOf(this.#options.security), (error, port) => {
        if (error === null) return resolve(port);
        reject(new MillraceError('bad-setting', `cannot listen on ${address}: ${error.message}`, { cause: error }));
      });
    });
  }

  /**
   * Opens no more tables, answers what is under way, ends each stream, closes the store. What takes longer than `graceMs`
   * is cut. Idempotent.
   */
  close(graceMs = 2000): Promise<void> {
    this.#closing ??= this.#close(graceMs);
    return this.#closing;
  }

  async #close(graceMs: number): Promise<void> {
    this.#unobserve();
    const enough = new AbortController();
    const drained = Promise.all([...this.#sessions].map((session) => session.drain()));
    await Promise.race([drained, sleep(this.#options.clock, graceMs, enough.signal).catch(() => undefined)]);
    enough.abort();
    this.#server.forceShutdown();
    await this.#options.store.close();
  }

  #admit(): void {
    if (this.#closing !== undefined) {
      throw new MillraceError('state-service-stopping', 'the state-service is shutting down');
    }
    const { tablesMax } = this.#limits;
    if (this.#tables() < tablesMax) return;
    const text = `the state-service holds ${tablesMax} tables; no more may be open`;
    throw new MillraceError('state-service-full', text, { details: { tablesMax } });
  }

  #tables(): number {
    let tables = 0;
    for (const session of this.#sessions) if (session.holdsTable) tables++;
    return tables;
  }
}

function credentialsOf({ tls }: ServerSecurity = {}): ServerCredentials {
  if (tls === undefined) return ServerCredentials.createInsecure();
  const pair = { private_key: Buffer.from(tls.key), cert_chain: Buffer.from(tls.cert) };
  return ServerCredentials.createSsl(null, [pair]);
}

function noToken(): MillraceError {
  return new MillraceError('state-service-token', 'the state-service wants to be shown its token');
}

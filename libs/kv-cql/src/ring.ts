/**
 * The client of a ring: quorum reads and writes, prepared and idempotent statements that may be repeated. A request that the
 * ring cannot serve now (a node died, no quorum, a timeout) is repeated with growing pauses until the time is over.
 */
import { readFileSync } from 'node:fs';
import { type Clock, MillraceError, type Random, sleep } from '@millrace/kernel';
import type { Telemetry } from '@millrace/telemetry';
import cassandra, { type Client, type QueryOptions, type types } from 'cassandra-driver';
import { DriverMetrics, observeDriver } from './driver-metrics.ts';
import { createKeyspace, createTables } from './schema.ts';
import type { CqlSettings } from './settings.ts';

export type Row = types.Row;

export interface Statement {
  readonly query: string;
  readonly params: readonly unknown[];
}

export interface RingServices {
  readonly clock: Clock;
  readonly random: Random;
  readonly telemetry: Telemetry;
}

const { localQuorum, localSerial } = cassandra.types.consistencies;
const backoffFirstMs = 50;
const backoffMaxMs = 2000;
const schemaTimeoutMs = 30_000;

export class Ring {
  readonly #client: Client;
  readonly #settings: CqlSettings;
  readonly #services: RingServices;
  readonly #unobserve: () => void;
  readonly #repeated: { add(value: number): void };
  readonly #closing = new AbortController();

  private constructor(client: Client, settings: CqlSettings, services: RingServices) {
    this.#client = client;
    this.#settings = settings;
    this.#services = services;
    const { metrics } = services.telemetry;
    this.#unobserve = observeDriver(metrics, client);
    this.#repeated = metrics.counter('millrace_cql_requests_repeated_total', 'Requests repeated by the store');
  }

  /** Connects, and makes the keyspace and tables that are missing. */
  static async open(settings: CqlSettings, services: RingServices): Promise<Ring> {
    const client = makeClient(settings, services);
    const ring = new Ring(client, settings, services);
    try {
      await ring.#repeat(() => client.connect());
      if (settings.createSchema) await ring.#createSchema();
      return ring;
    } catch (error) {
      await ring.close();
      throw error;
    }
  }

  /** Rows of a statement that may be repeated; one page of them. */
  async rows({ query, params }: Statement): Promise<readonly Row[]> {
    const result = await this.#execute(query, params, { prepare: true, isIdempotent: true });
    return result.rows;
  }

  /** All rows, page by page. */
  async *pages({ query, params }: Statement, rowsMax: number): AsyncGenerator<readonly Row[]> {
    let pageState: string | undefined;
    do {
      const options: QueryOptions = { prepare: true, isIdempotent: true, fetchSize: rowsMax };
      if (pageState !== undefined) options.pageState = pageState;
      const result = await this.#execute(query, params, options);
      yield result.rows;
      pageState = result.pageState;
    } while (pageState !== undefined && pageState !== null);
  }

  /** Applies statements together, not atomically. `timestamp` orders them against others of the same rows. */
  async write(statements: readonly Statement[], timestamp?: types.Long): Promise<void> {
    const options: QueryOptions = { prepare: true, isIdempotent: true, logged: false };
    if (timestamp !== undefined) options.timestamp = timestamp;
    const [first] = statements;
    if (first === undefined) return;
    if (statements.length === 1) {
      await this.#execute(first.query, first.params, options);
      return;
    }
    const queries = statements.map(({ query, params }) => ({ query, params: [...params] }));
    await this.#repeat(() => this.#client.batch(queries, options));
  }

  /** Compare-and-set. False when the condition did not hold, and when that is not known: read and try again. */
  async compareAndSet({ query, params }: Statement): Promise<boolean> {
    const options: QueryOptions = { prepare: true, serialConsistency: localSerial };
    try {
      return (await this.#client.execute(query, [...params], options)).wasApplied();
    } catch (error) {
      if (!mayPass(error)) throw refused(error);
      await sleep(this.#services.clock, backoffFirstMs, this.#closing.signal);
      return false;
    }
  }

  /** As {@link rows}, seeing every compare-and-set that was answered. */
  async rowsSerial({ query, params }: Statement): Promise<readonly Row[]> {
    const options: QueryOptions = { prepare: true, isIdempotent: true, consistency: localSerial };
    return (await this.#execute(query, params, options)).rows;
  }

  async close(): Promise<void> {
    this.#closing.abort(new MillraceError('state-table-closed', 'the connection to the ring is closed'));
    this.#unobserve();
    await this.#client.shutdown();
  }

  #execute(query: string, params: readonly unknown[], options: QueryOptions): Promise<types.ResultSet> {
    return this.#repeat(() => this.#client.execute(query, [...params], options));
  }

  /** Changes of the schema take seconds, so what is there is not made again. */
  async #createSchema(): Promise<void> {
    const { keyspace } = this.#settings;
    const query = 'SELECT table_name FROM system_schema.tables WHERE keyspace_name = ?';
    const present = new Set((await this.rows({ query, params: [keyspace] })).map((row) => String(row['table_name'])));
    const missing = [...createTables(this.#settings)].filter(([name]) => !present.has(name));
    if (missing.length === 0) return;
    for (const statement of [createKeyspace(this.#settings), ...missing.map(([, create]) => create)]) {
      const options = { prepare: false, isIdempotent: true, readTimeout: schemaTimeoutMs };
      await this.#repeat(() => this.#client.execute(statement, [], options));
    }
  }

  async #repeat<T>(request: () => Promise<T>): Promise<T> {
    const { clock, random } = this.#services;
    const startedMs = clock.monotonicMs();
    for (let pauseMs = backoffFirstMs; ; pauseMs = Math.min(pauseMs * 2, backoffMaxMs)) {
      try {
        return await request();
      } catch (error) {
        if (this.#closing.signal.aborted) throw this.#closing.signal.reason;
        if (!mayPass(error)) throw refused(error);
        const waitedMs = clock.monotonicMs() - startedMs;
        if (waitedMs > this.#settings.giveUpAfterMs) throw unavailable(error, waitedMs);
      }
      this.#repeated.add(1);
      await sleep(clock, pauseMs * (0.5 + random.float() / 2), this.#closing.signal);
    }
  }
}

function makeClient(settings: CqlSettings, { telemetry }: RingServices): Client {
  const { contactPoints, port, localDataCenter, username, password, caFile, requestTimeoutMs } = settings;
  const { ConstantSpeculativeExecutionPolicy, NoSpeculativeExecutionPolicy } = cassandra.policies.speculativeExecution;
  return new cassandra.Client({
    contactPoints: [...contactPoints],
    protocolOptions: { port },
    localDataCenter,
    ...(username === undefined ? {} : { credentials: { username, password: password as string } }),
    ...(caFile === undefined ? {} : { sslOptions: { ca: [readFileSync(caFile)], rejectUnauthorized: true } }),
    queryOptions: { consistency: localQuorum, prepare: true, captureStackTrace: false },
    socketOptions: { readTimeout: requestTimeoutMs, connectTimeout: requestTimeoutMs },
    policies: {
      speculativeExecution:
        settings.speculateAfterMs === 0
          ? new NoSpeculativeExecutionPolicy()
          : new ConstantSpeculativeExecutionPolicy(settings.speculateAfterMs, 1),
    },
    metrics: new DriverMetrics(telemetry.metrics),
  });
}

const passing: readonly number[] = [
  cassandra.types.responseErrorCodes.serverError,
  cassandra.types.responseErrorCodes.unavailableException,
  cassandra.types.responseErrorCodes.overloaded,
  cassandra.types.responseErrorCodes.isBootstrapping,
  cassandra.types.responseErrorCodes.truncateError,
  cassandra.types.responseErrorCodes.writeTimeout,
  cassandra.types.responseErrorCodes.readTimeout,
  cassandra.types.responseErrorCodes.readFailure,
  cassandra.types.responseErrorCodes.writeFailure,
];

/** Whether the same request may succeed later. */
function mayPass(error: unknown): boolean {
  const { errors } = cassandra;
  if (error instanceof errors.NoHostAvailableError || error instanceof errors.OperationTimedOutError) return true;
  if (error instanceof errors.BusyConnectionError) return true;
  if (error instanceof errors.ResponseError) return passing.includes(error.code);
  // A connection that ended while the request was on it.
  return error instanceof Error && /socket|connection|ECONN/i.test(`${error.name} ${error.message}`);
}

function refused(cause: unknown): MillraceError {
  if (cause instanceof MillraceError) return cause;
  const message = `the ring refused a request: ${cause instanceof Error ? cause.message : String(cause)}`;
  return new MillraceError('cql-refused', message, { cause });
}

function unavailable(cause: unknown, waitedMs: number): MillraceError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  const message = `the ring did not serve a request within ${Math.round(waitedMs)} ms: ${reason}`;
  return new MillraceError('cql-unavailable', message, { cause });
}

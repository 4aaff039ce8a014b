/**
 * One connection to Redis. Commands are sent in the order of their calls and Redis executes them in that order: that is how a
 * table keeps the order of its calls. A connection that breaks is not mended, since what was under way on it is not known.
 */
import { MillraceError } from '@millrace/kernel';
import { createClient, RESP_TYPES, type RedisArgument } from '@redis/client';

export type Argument = RedisArgument | number;
type Client = ReturnType<typeof makeClient>;

const connectTimeoutMs = 5000;

export class Connection {
  readonly #client: Client;
  #failure: Error | undefined;

  private constructor(client: Client) {
    this.#client = client;
    client.on('error', (error: Error) => {
      this.#failure ??= error;
    });
  }

  static async open(url: string): Promise<Connection> {
    const client = makeClient(url);
    const connection = new Connection(client);
    try {
      await client.connect();
      return connection;
    } catch (error) {
      throw unavailable(url, error);
    }
  }

  get isOpen(): boolean {
    return this.#failure === undefined && this.#client.isReady;
  }

  /** Sends a command; replies that are strings come as bytes. */
  async send<T>(...args: readonly Argument[]): Promise<T> {
    const words = args.map((arg) => (typeof arg === 'number' ? String(arg) : arg));
    try {
      return await this.#client.sendCommand<T>(words, { typeMapping: { [RESP_TYPES.BLOB_STRING]: Buffer } });
    } catch (error) {
      if (error instanceof Error && error.message.startsWith('FENCED')) {
        throw new MillraceError('state-fenced', `a newer generation has opened the table:${error.message.slice(6)}`);
      }
      throw unavailable(String(words[0]), error);
    }
  }

  close(): void {
    this.#client.destroy();
  }
}

function makeClient(url: string) {
  return createClient({
    url,
    RESP: 2,
    disableOfflineQueue: true,
    socket: { connectTimeout: connectTimeoutMs, reconnectStrategy: false },
  });
}

function unavailable(what: string, cause: unknown): MillraceError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new MillraceError('state-backend-unavailable', `Redis did not do as asked (${what}): ${reason}`, { cause });
}

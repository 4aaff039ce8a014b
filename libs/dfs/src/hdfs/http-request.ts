import http from 'node:http';
import https from 'node:https';

export interface HttpRequest {
  readonly method: 'GET' | 'PUT' | 'POST' | 'DELETE';
  readonly url: URL;
  readonly body?: Uint8Array;
}

export interface HttpAnswer {
  readonly status: number;
  readonly bytes: Uint8Array;
}

/** Connections that are kept, for one driver. Rejects with the error of the socket; any status is an answer. */
export class HttpConnections {
  readonly #plain: http.Agent;
  readonly #secure: https.Agent;
  readonly #connectTimeoutMs: number;

  constructor(options: { readonly connections: number; readonly connectTimeoutMs: number }) {
    const agent = { keepAlive: true, maxSockets: options.connections };
    this.#plain = new http.Agent(agent);
    this.#secure = new https.Agent(agent);
    this.#connectTimeoutMs = options.connectTimeoutMs;
  }

  /** `node:http` and not fetch, which does not get along with data nodes that answer before they have read. */
  send(request: HttpRequest, signal: AbortSignal): Promise<HttpAnswer> {
    const { promise, resolve, reject } = Promise.withResolvers<HttpAnswer>();
    const isSecure = request.url.protocol === 'https:';
    const options = {
      method: request.method,
      agent: isSecure ? this.#secure : this.#plain,
      signal,
      headers: { 'content-length': request.body?.length ?? 0, 'content-type': 'application/octet-stream' },
    };
    const outgoing = (isSecure ? https : http).request(request.url, options, (incoming) => {
      const chunks: Uint8Array[] = [];
      incoming.on('data', (chunk: Uint8Array) => chunks.push(chunk));
      incoming.on('error', reject);
      incoming.on('end', () => resolve({ status: incoming.statusCode ?? 0, bytes: Buffer.concat(chunks) }));
    });
    outgoing.on('error', reject);
    outgoing.on('socket', (socket) => {
      if (!socket.connecting) return;
      socket.setTimeout(this.#connectTimeoutMs, () => {
        outgoing.destroy(new Error(`no connection to ${request.url.host} within ${this.#connectTimeoutMs} ms`));
      });
      socket.once('connect', () => socket.setTimeout(0));
    });
    outgoing.end(request.body);
    return promise;
  }

  close(): void {
    this.#plain.destroy();
    this.#secure.destroy();
  }
}

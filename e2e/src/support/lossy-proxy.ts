import http from 'node:http';
import type { AddressInfo } from 'node:net';

/** What becomes of a request: its answer is lost after the server has done it, the server is not asked, or all is well. */
export type Fate = 'pass' | 'lose-answer' | 'busy';

export interface ProxiedRequest {
  readonly method: string;
  readonly url: string;
}

/** An HTTP proxy before a real server, which loses answers and says 503 when told to. */
export class LossyProxy implements AsyncDisposable {
  fate: (request: ProxiedRequest) => Fate = () => 'pass';
  readonly #server: http.Server;
  readonly #agent = new http.Agent({ keepAlive: true });
  readonly #port: number;

  private constructor(port: number) {
    this.#port = port;
    this.#server = http.createServer((incoming, outgoing) => this.#handle(incoming, outgoing));
  }

  static async start(serverPort: number): Promise<LossyProxy> {
    const proxy = new LossyProxy(serverPort);
    await new Promise<void>((resolve) => proxy.#server.listen(0, '127.0.0.1', resolve));
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  #handle(incoming: http.IncomingMessage, outgoing: http.ServerResponse): void {
    const { method = '', url = '', headers } = incoming;
    const fate = this.fate({ method, url });
    if (fate === 'busy') {
      incoming.resume();
      outgoing
        .writeHead(503)
        .end('<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>');
      return;
    }
    const options = { host: '127.0.0.1', port: this.#port, method, path: url, headers, agent: this.#agent };
    const request = http.request(options, (answer) => {
      if (fate === 'lose-answer') {
        // All of it has come: the server has done what it was asked.
        answer.resume().once('end', () => incoming.socket.destroy());
        return;
      }
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
    });
    request.on('error', () => incoming.socket.destroy());
    incoming.pipe(request);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#agent.destroy();
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

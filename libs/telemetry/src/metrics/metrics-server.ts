import { createServer, type Server } from 'node:http';
import { MillraceError } from '@millrace/kernel';
import { type MetricSource, prometheusContentType, renderPrometheus } from './prometheus.ts';

/** Serves `/metrics` in Prometheus' text format. Read only; answers nothing else. */
export class MetricsServer {
  readonly #server: Server;

  constructor(sources: () => readonly MetricSource[]) {
    this.#server = createServer((request, response) => {
      if (request.method !== 'GET' || request.url?.split('?')[0] !== '/metrics') {
        response.writeHead(404).end();
        return;
      }
      response.writeHead(200, { 'content-type': prometheusContentType }).end(renderPrometheus(sources()));
    });
  }

  /** Port 0 for any; resolves to the port. */
  listen(port: number, host: string): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', (cause) => {
        const text = `setting "metricsPort": cannot listen on ${host}:${port}: ${cause.message}`;
        reject(new MillraceError('bad-setting', text, { cause }));
      });
      this.#server.listen(port, host, () => resolve((this.#server.address() as { port: number }).port));
    });
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}

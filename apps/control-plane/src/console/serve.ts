import type { AddressInfo } from 'node:net';
import { serve } from '@hono/node-server';
import { MillraceError } from '@millrace/kernel';
import type { Hono } from 'hono';

export interface RunningConsole {
  readonly url: string;
  close(): Promise<void>;
}

/** Serves the console; rejects with `port-in-use` or `bad-setting`. */
export function serveConsole(app: Hono, host: string, port: number): Promise<RunningConsole> {
  return new Promise((resolve, reject) => {
    const server = serve({ fetch: app.fetch, hostname: host, port }, (address: AddressInfo) => {
      const shown = address.family === 'IPv6' ? `[${address.address}]` : address.address;
      resolve({
        url: `http://${shown}:${address.port}`,
        close: () =>
          new Promise((done) => {
            server.close(() => done());
            if ('closeAllConnections' in server) server.closeAllConnections();
          }),
      });
    });
    server.once('error', (error: NodeJS.ErrnoException) => {
      reject(
        error.code === 'EADDRINUSE'
          ? new MillraceError('port-in-use', `MILLRACE_CONSOLE_PORT=${port}: the port is taken on ${host}.`, {
              cause: error,
            })
          : new MillraceError(
              'bad-setting',
              `MILLRACE_CONSOLE_HOST=${host}, MILLRACE_CONSOLE_PORT=${port}: ${error.message}`,
              {
                cause: error,
              },
            ),
      );
    });
  });
}

import { createServer } from 'node:net';
import { MillraceError } from '@millrace/kernel';

function listen(port: number, host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(port, host, () => {
      const address = server.address();
      const bound = typeof address === 'object' && address !== null ? address.port : port;
      server.close(() => resolve(bound));
    });
  });
}

/** A port that nobody listens on right now. */
export function freePort(host = '127.0.0.1'): Promise<number> {
  return listen(0, host);
}

/** Rejects with `port-in-use`, naming the setting, unless `port` can be listened on. */
export async function requireFreePort(port: number, setting: string, host = '127.0.0.1'): Promise<void> {
  try {
    await listen(port, host);
  } catch (error) {
    throw new MillraceError(
      'port-in-use',
      `Port ${port} on ${host} is taken by another program. Stop it, or choose another port with ${setting} (0 = any free port).`,
      { cause: error, details: { port, setting } },
    );
  }
}

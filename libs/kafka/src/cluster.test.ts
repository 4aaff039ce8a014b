import { type AddressInfo, createServer, type Socket } from 'node:net';
import { systemClock } from '@millrace/kernel';
import { expect, onTestFinished, test } from 'vitest';
import { Cluster } from './cluster.ts';
import { ClusterTransactions } from './cluster-transactions.ts';
import { kafkaSource } from './kafka-source.ts';
import { clusterSettings, type KafkaConnection } from './settings.ts';

/** Takes connections and never says a word. */
async function silentBroker(): Promise<KafkaConnection> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { brokers: [`127.0.0.1:${port}`], requestTimeoutMs: 100, timeoutMs: 400 };
}

test('a commit to a broker that does not answer ends after its time limit, and the job can be restarted', async () => {
  const cluster = new Cluster(clusterSettings(await silentBroker()), systemClock);
  const transactions = new ClusterTransactions(cluster, { transactionTimeoutMs: 1000, compression: 'none' });
  const startMs = systemClock.monotonicMs();
  await expect(transactions.commit({ id: 'x', producerId: '1', epoch: 0 })).rejects.toMatchObject({
    code: 'kafka-unavailable',
    kind: 'retry',
  });
  expect(systemClock.monotonicMs() - startMs).toBeLessThan(5000);
  await transactions.close();
});

test('closing does not wait for a broker that does not answer', async () => {
  const cluster = new Cluster(clusterSettings({ ...(await silentBroker()), timeoutMs: 60_000 }), systemClock);
  const asked = cluster.persist('asking', () => cluster.coordinator('group', 'g')).catch((error: unknown) => error);
  await cluster.close();
  expect(await asked).toMatchObject({ code: 'cancelled' });
});

test.each([
  [{ topics: [] }, /topics/],
  [{ topics: ['a', 'a'] }, /twice/],
  [{ start: 'committed' as const }, /group/],
  [{ stop: 'latest' as const, discover: 1000 }, /exclude/],
  [{ brokers: ['nowhere'] }, /host:port/],
  [{ start: { timestampMs: Number.NaN } }, /timestampMs/],
])('a source that cannot work is refused before anything starts: %j', (options, message) => {
  const decode = (): number => 1;
  expect(() => kafkaSource({ brokers: ['127.0.0.1:9092'], topics: ['a'], decode, ...options })).toThrow(message);
});

import { MillraceError, systemClock } from '@millrace/kernel';
import {
  bidiClient,
  Exchange,
  frameCodec,
  fromStatus,
  Health,
  Runner,
  ServingStatus,
  type UnaryClient,
  unaryClient,
} from '@millrace/proto';
import type { SlotSnapshot } from '@millrace/streams';
import { memoryTelemetry } from '@millrace/telemetry/testing';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { AttemptCalls, HostedAttempt } from './attempt-calls.ts';
import { RunnerServer } from './runner-server.ts';

const memory = memoryTelemetry();
let server: RunnerServer;
let client: UnaryClient<typeof Runner>;
let address: string;
const timeoutMs = 5000;

beforeEach(async () => {
  server = new RunnerServer({ runnerId: 'r1', clock: systemClock, telemetry: memory.telemetry });
  address = `127.0.0.1:${await server.listen('127.0.0.1:0')}`;
  client = unaryClient(Runner, address);
});
afterEach(async () => {
  client.close();
  await server.close(100);
});

function attempt(generation: number, calls: Partial<AttemptCalls> = {}): HostedAttempt & { closedBy: unknown } {
  const hosted = {
    job: 'flights',
    generation,
    closedBy: undefined as unknown,
    calls: {
      injectBarrier: async () => undefined,
      endInputs: async () => undefined,
      awaitDrain: async () => [],
      completeCheckpoint: async () => undefined,
      abortCheckpoint: async () => undefined,
      status: async () => [],
      ...calls,
    },
    exchange: {
      accept: () => undefined,
      close: async (reason?: unknown) => {
        hosted.closedBy = reason;
      },
    },
  };
  return hosted;
}

function target(generation: number, runnerId = 'r1', job = 'flights') {
  return { job, generation: BigInt(generation), runnerId };
}

const snapshot: SlotSnapshot = {
  checkpoint: 9,
  subtask: 0,
  operators: [{ operator: 'count', subtask: 0, list: [1] }],
  ended: false,
  alignMs: 1,
  drainMs: 2,
  flushMs: 3,
  inFlightAtBarrier: 4,
  overtakenBytes: 0,
};

test("the control plane's calls reach the attempt that they name", async () => {
  const seen: unknown[] = [];
  server.register(
    attempt(2, {
      injectBarrier: async ({ checkpoint }) => void seen.push(['inject', checkpoint]),
      awaitDrain: async () => [snapshot],
      completeCheckpoint: async (checkpoint, last) => void seen.push(['complete', checkpoint, last]),
      abortCheckpoint: async (checkpoint) => void seen.push(['abort', checkpoint]),
    }),
  );
  const { call } = client;
  await call.injectBarrier({ target: target(2), checkpoint: 9n }, { timeoutMs });
  const drained = await call.awaitDrain({ target: target(2), checkpoint: 9n }, { timeoutMs });
  expect(drained.slotSnapshots.map((json) => JSON.parse(json) as unknown)).toEqual([snapshot]);
  await call.completeCheckpoint({ target: target(2), checkpoint: 9n, last: true }, { timeoutMs });
  await call.abortCheckpoint({ target: target(2), checkpoint: 10n }, { timeoutMs });
  expect(seen).toEqual([
    ['inject', 9],
    ['complete', 9, true],
    ['abort', 10],
  ]);
});

test('a call traces beneath its caller, and the attempt beneath the call', async () => {
  let inner: string | undefined;
  server.register(attempt(2, { injectBarrier: async (_checkpoint, { parent }) => void (inner = parent) }));
  const parent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  await client.call.injectBarrier({ target: target(2), checkpoint: 1n }, { timeoutMs, parent });
  expect(memory.spans.at(-1)).toMatchObject({ name: 'Runner.InjectBarrier', parent, context: inner });
});

test.each([
  ['another runner on a reused address', target(2, 'r0'), { code: 'runner-mismatch', kind: 'setup' }],
  ['an older generation', target(1), { code: 'attempt-fenced', kind: 'fenced' }],
  ['an attempt that is not deployed yet', target(3), { code: 'attempt-unknown', kind: 'retry' }],
  ['a job that is not here', target(2, 'r1', 'other'), { code: 'attempt-unknown', kind: 'retry' }],
  ['nothing', undefined, { code: 'bad-argument', kind: 'input' }],
])('a call for %s is refused', async (_what, named, refusal) => {
  server.register(attempt(2));
  const request = named === undefined ? {} : { target: named };
  await expect(client.call.status(request, { timeoutMs })).rejects.toMatchObject(refusal);
});

test('a newer attempt fences the older one, also after it has ended', async () => {
  const older = attempt(2);
  const unregisterOlder = server.register(older);
  const unregister = server.register(attempt(3));
  expect(older.closedBy).toMatchObject({ kind: 'fenced' });
  unregisterOlder();
  await client.call.status({ target: target(3) }, { timeoutMs });
  unregister();
  await expect(client.call.status({ target: target(2) }, { timeoutMs })).rejects.toMatchObject({ kind: 'fenced' });
  await expect(client.call.status({ target: target(3) }, { timeoutMs })).rejects.toMatchObject({ kind: 'retry' });
  expect(() => server.register(attempt(2))).toThrow(/generation 2 .* is over/);
});

test('a stream without a hello first, or for an unknown attempt, is ended with the reason', async () => {
  const pull = bidiClient(Exchange.method.pull, frameCodec, address);
  const refused = (first: Parameters<ReturnType<typeof pull.open>['write']>[0]): Promise<MillraceError> =>
    new Promise((resolve) => {
      const stream = pull.open();
      stream.on('data', () => undefined);
      stream.on('error', (error) => resolve(fromStatus(error as never)));
      stream.write(first);
    });
  expect(await refused({ kind: { case: 'credit', value: { bytes: 1 } } })).toMatchObject({ code: 'bad-argument' });
  expect(await refused({ kind: { case: 'hello', value: target(2) } })).toMatchObject({ code: 'attempt-unknown' });
  pull.close();
});

test('closing lets a call in flight end, and cuts one that does not', async () => {
  let finish: (() => void) | undefined;
  const entered = new Promise<void>((resolve) => {
    server.register(
      attempt(2, {
        injectBarrier: () => {
          resolve();
          return new Promise((done) => {
            finish = done;
          });
        },
      }),
    );
  });
  const slow = client.call.injectBarrier({ target: target(2), checkpoint: 1n }, { timeoutMs });
  await entered;
  const closed = server.close(2000);
  finish?.();
  await expect(slow).resolves.toBeDefined();
  client.close();
  await closed;
});

test('an address that is taken is a set-up error that names it', async () => {
  const second = new RunnerServer({ runnerId: 'r2', clock: systemClock, telemetry: memory.telemetry });
  await expect(second.listen(address)).rejects.toThrow(address);
  await second.close(0);
});

test('a health check of gRPC is answered', async () => {
  const health = unaryClient(Health, address);
  await expect(health.call.check({}, { timeoutMs })).resolves.toMatchObject({ status: ServingStatus.SERVING });
  health.close();
});

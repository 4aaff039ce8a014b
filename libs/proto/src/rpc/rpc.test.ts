import { Server, ServerCredentials, status } from '@grpc/grpc-js';
import { MillraceError } from '@millrace/kernel';
import { afterEach, expect, test } from 'vitest';
import { Runner } from '../gen/millrace/v1/runner_pb.js';
import { serverOptions } from './options.ts';
import { addUnary, type CallContext, type RpcTracer, type UnaryHandlers } from './serve.ts';
import { type UnaryClient, unaryClient } from './unary-client.ts';
import { fromStatus, toStatus } from './wire-error.ts';

const closers: (() => void)[] = [];
afterEach(() => {
  for (const close of closers.splice(0).toReversed()) close();
});

const spans: { name: string; parent: string | undefined }[] = [];
const tracer: RpcTracer = {
  span(name, options, work) {
    spans.push({ name, parent: options.parent });
    return work({ context: `${options.parent}-child` });
  },
};

async function serve(
  handlers: Partial<UnaryHandlers<typeof Runner>>,
  messageBytesMax?: number,
): Promise<UnaryClient<typeof Runner>> {
  const server = new Server(serverOptions(messageBytesMax === undefined ? {} : { messageBytesMax }));
  const missing = (): Promise<never> => Promise.reject(new Error('not in this test'));
  addUnary(
    server,
    Runner,
    {
      injectBarrier: missing,
      endInputs: missing,
      awaitDrain: missing,
      completeCheckpoint: missing,
      abortCheckpoint: missing,
      status: missing,
      ...handlers,
    },
    tracer,
  );
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (e, p) =>
      e === null ? resolve(p) : reject(e),
    );
  });
  const client = unaryClient(Runner, `127.0.0.1:${port}`);
  closers.push(
    () => server.forceShutdown(),
    () => client.close(),
  );
  return client;
}

const target = { job: 'flights', generation: 7n, runnerId: 'r1' };

test('a call brings its request and its answer, typed', async () => {
  const client = await serve({
    status: async (request) => ({ slotStats: [`${request.target?.job}/${request.target?.generation}`] }),
  });
  const answer = await client.call.status({ target }, { timeoutMs: 5000 });
  expect(answer.slotStats).toEqual(['flights/7']);
});

test("a handler's error arrives as the same error: code, kind, message, details", async () => {
  const thrown = new MillraceError('attempt-fenced', 'generation 8 runs — überall', {
    details: { generation: 8, ok: false, none: null },
  });
  const client = await serve({ injectBarrier: () => Promise.reject(thrown) });
  await expect(client.call.injectBarrier({ target, checkpoint: 1n }, { timeoutMs: 5000 })).rejects.toMatchObject({
    code: 'attempt-fenced',
    kind: 'fenced',
    message: thrown.message,
    details: thrown.details,
  });
});

test('a fault that nobody expected arrives as a bug with its message, however long', async () => {
  const client = await serve({ status: () => Promise.reject(new TypeError(`x${'y'.repeat(100_000)}`)) });
  const error = await client.call.status({ target }, { timeoutMs: 5000 }).catch((e: unknown) => e as MillraceError);
  expect(error).toMatchObject({ code: 'unexpected', kind: 'bug' });
  expect((error as MillraceError).message.startsWith('xyyy')).toBe(true);
});

test('a code that this version does not know keeps its kind', () => {
  const sent = toStatus(new MillraceError('attempt-fenced', 'newer'));
  const json = JSON.parse(String(sent.metadata.get('millrace-error-bin')[0])) as object;
  sent.metadata.set(
    'millrace-error-bin',
    Buffer.from(JSON.stringify({ ...json, code: 'from-the-future', kind: 'retry' })),
  );
  expect(fromStatus(sent)).toMatchObject({ kind: 'retry', message: 'newer' });
});

test('a server that is not there is kind retry', async () => {
  const client = unaryClient(Runner, '127.0.0.1:1');
  closers.push(() => client.close());
  await expect(client.call.status({ target }, { timeoutMs: 5000 })).rejects.toMatchObject({
    code: 'rpc-unavailable',
    kind: 'retry',
  });
});

test('a call without an answer ends at its deadline and its handler is told', async () => {
  let seen: CallContext | undefined;
  const client = await serve({
    awaitDrain: (_request, context) => {
      seen = context;
      return new Promise((_resolve, reject) => {
        context.signal.addEventListener('abort', () => reject(context.signal.reason as Error));
      });
    },
  });
  await expect(client.call.awaitDrain({ target, checkpoint: 1n }, { timeoutMs: 150 })).rejects.toMatchObject({
    code: 'rpc-deadline',
    kind: 'retry',
  });
  await expect.poll(() => seen?.signal.aborted).toBe(true);
});

test('a caller that gives up is cancelled at once, and so is the handler', async () => {
  let handlerAborted = false;
  const abort = new AbortController();
  const client = await serve({
    awaitDrain: (_request, { signal }) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => {
          handlerAborted = true;
          reject(signal.reason as Error);
        });
        abort.abort();
      }),
  });
  await expect(
    client.call.awaitDrain({ target, checkpoint: 1n }, { timeoutMs: 10_000, signal: abort.signal }),
  ).rejects.toMatchObject({ code: 'cancelled', kind: 'cancelled' });
  await expect.poll(() => handlerAborted).toBe(true);
});

test("the server's span is a child of the caller's, and the handler gets it", async () => {
  const parent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  let given: string | undefined;
  const client = await serve({
    injectBarrier: async (_request, context) => {
      given = context.parent;
      return {};
    },
  });
  await client.call.injectBarrier({ target, checkpoint: 1n }, { timeoutMs: 5000, parent });
  expect(given).toBe(`${parent}-child`);
  expect(spans.at(-1)).toEqual({ name: 'Runner.InjectBarrier', parent });
});

test('a message over the limit is refused as set-up, not retried for ever', async () => {
  const client = await serve({ status: async () => ({ slotStats: ['x'.repeat(10_000)] }) }, 4000);
  await expect(client.call.status({ target }, { timeoutMs: 5000 })).rejects.toMatchObject({
    code: 'rpc-too-large',
    kind: 'setup',
  });
});

test.each([
  [status.UNAVAILABLE, 'retry'],
  [status.INTERNAL, 'retry'],
  [status.CANCELLED, 'retry'],
  [status.UNIMPLEMENTED, 'setup'],
])('status %i of the transport itself is kind %s', (code, kind) => {
  expect(fromStatus({ code, details: '' }).kind).toBe(kind);
});

import { Server, ServerCredentials } from '@grpc/grpc-js';
import { MillraceError } from '@millrace/kernel';
import { addUnary, Runner, serverOptions } from '@millrace/proto';
import { noTelemetry } from '@millrace/telemetry';

/** The gRPC face of a runner with slots that always answer; for tests of the round's steps. */
export interface RunnerStub {
  readonly address: string;
  readonly calls: string[];
  ended: boolean;
  /** Records that each slot says it has read. */
  recordsIn: number;
  /** Set: every call is refused with it. */
  refuse: MillraceError | undefined;
  /** Paths that the slots' tables name as their holders, by checkpoint. */
  holders: (checkpoint: number, subtask: number) => readonly string[];
  close(): void;
}

export async function startRunnerStub(subtasks: readonly number[]): Promise<RunnerStub> {
  const server = new Server(serverOptions());
  const log = (call: string): void => {
    if (stub.refuse !== undefined) throw stub.refuse;
    stub.calls.push(call);
  };
  const part = (checkpoint: number, subtask: number): string =>
    JSON.stringify({
      checkpoint,
      subtask,
      ended: stub.ended,
      operators: [
        {
          operator: 'count',
          subtask,
          table: { holders: stub.holders(checkpoint, subtask), bytesPut: 10, bytesLinked: 5 },
        },
      ],
    });
  addUnary(
    server,
    Runner,
    {
      injectBarrier: async ({ checkpoint, stop }) => {
        log(`barrier ${checkpoint}${stop ? ' stop' : ''}`);
        return {};
      },
      endInputs: async () => {
        log('end inputs');
        return {};
      },
      awaitDrain: async ({ checkpoint }) => {
        log(`drain ${checkpoint}`);
        return { slotSnapshots: subtasks.map((subtask) => part(Number(checkpoint), subtask)) };
      },
      completeCheckpoint: async ({ checkpoint, last }) => {
        log(`complete ${checkpoint}${last ? ' last' : ''}`);
        return {};
      },
      abortCheckpoint: async ({ checkpoint }) => {
        log(`abort ${checkpoint}`);
        return {};
      },
      status: async () => {
        log('status');
        return { slotStats: subtasks.map((subtask) => JSON.stringify({ subtask, recordsIn: stub.recordsIn })) };
      },
    },
    noTelemetry.tracer,
  );
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  const stub: RunnerStub = {
    address: `127.0.0.1:${port}`,
    calls: [],
    ended: false,
    recordsIn: 0,
    refuse: undefined,
    holders: () => [],
    close: () => server.forceShutdown(),
  };
  return stub;
}

import { once } from 'node:events';
import { isMainThread, Worker, workerData } from 'node:worker_threads';
import { systemClock } from '@millrace/kernel';
import { startTelemetry } from '../start-telemetry.ts';

/** A process of the tests that makes a span, and a worker thread of it that makes a span beneath. */
const running = await startTelemetry({ service: 'fixture', clock: systemClock, env: process.env });
if (isMainThread) {
  await running.telemetry.tracer.span('in-process', { parent: process.env.PARENT }, async ({ context }) => {
    const worker = new Worker(new URL(import.meta.url), { workerData: context });
    await once(worker, 'exit');
  });
} else {
  await running.telemetry.tracer.span('in-thread', { parent: workerData as string }, async () => undefined);
}
await running.shutdown();

/** A slot of the bench `exchange`: sends or takes frames as credit allows, as a slot does, and decodes nothing. */
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { PortTransport } from '../port-transport.ts';
import type { BenchRun } from './bench-process.ts';

export interface BenchSlotData {
  readonly slot: number;
  readonly ports: ReadonlyMap<number, MessagePort>;
  readonly run: BenchRun;
}

const { slot, ports, run } = workerData as BenchSlotData;
const { windowBytes } = run;
const transport = new PortTransport(ports);
const edge = 0;
const [writer, reader] = [0, 1];
let creditBytes = 0;
let sent = 0;
let received = 0;
let ungrantedBytes = 0;
let startMs = 0;

function write(): void {
  while (sent < run.frames && creditBytes > 0) {
    // A frame is packed in memory of its own, which is given away.
    const frame = new Uint8Array(run.frameBytes);
    frame[0] = 1;
    creditBytes -= frame.length;
    sent++;
    transport.send(reader, edge, frame);
  }
}

transport.listen({
  onFrame(_from, _edge, frame) {
    if (received++ === 0) startMs = performance.now();
    ungrantedBytes += frame.length;
    if (run.stopped !== true && ungrantedBytes * 4 >= windowBytes) {
      transport.grant(writer, edge, ungrantedBytes);
      ungrantedBytes = 0;
    }
    if (received === run.frames) parentPort?.postMessage(performance.now() - startMs);
  },
  onCredit(_to, _edge, bytes) {
    creditBytes += bytes;
    write();
  },
  onBroken(_peer, reason) {
    throw reason;
  },
});
if (slot === reader) transport.grant(writer, edge, windowBytes);

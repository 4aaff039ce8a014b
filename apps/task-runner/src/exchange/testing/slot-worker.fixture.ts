import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { MillraceError } from '@millrace/kernel';
import { PortTransport } from '../port-transport.ts';
import { faultOf, makeFrame, type Traffic } from './traffic.ts';

/** A slot of the tests: sends its traffic to every peer as credit allows, checks what it gets, grants what it read. */
export interface SlotWorkerData {
  readonly slot: number;
  readonly ports: ReadonlyMap<number, MessagePort>;
  readonly traffic: Traffic;
}
export type SlotWorkerCommand = { readonly kind: 'read' } | { readonly kind: 'close'; readonly reason?: string };
export type SlotWorkerReport =
  | { readonly kind: 'done'; readonly frames: number; readonly heldBytesMax: number }
  | { readonly kind: 'fault'; readonly text: string }
  | { readonly kind: 'broken'; readonly peer: number; readonly code: string; readonly errorKind: string };

const { slot, ports, traffic } = workerData as SlotWorkerData;
const report = (message: SlotWorkerReport): void => parentPort?.postMessage(message);
const transport = new PortTransport(ports);

interface Lane {
  readonly peer: number;
  readonly edge: number;
  credit: number;
  sent: number;
  received: number;
  heldBytes: number;
}
const lanes = new Map<string, Lane>();
for (const peer of ports.keys()) {
  for (const edge of traffic.edges) {
    const credit = traffic.ignoredCreditBytes ?? traffic.windowBytes;
    lanes.set(`${peer}/${edge}`, { peer, edge, credit, sent: 0, received: 0, heldBytes: 0 });
  }
}
let stalled = traffic.stalled?.includes(slot) ?? false;
let heldBytesMax = 0;
let told = false;

function lane(peer: number, edge: number): Lane {
  return lanes.get(`${peer}/${edge}`) as Lane;
}

function sendMore(to: Lane): void {
  while (to.sent < traffic.frames && to.credit > 0) {
    const frame = makeFrame(traffic, { from: slot, to: to.peer, edge: to.edge }, to.sent++);
    to.credit -= frame.length;
    transport.send(to.peer, to.edge, frame);
  }
  checkDone();
}

function checkDone(): void {
  if (told) return;
  for (const { sent, received } of lanes.values()) if (sent + received < 2 * traffic.frames) return;
  told = true;
  report({ kind: 'done', frames: traffic.frames * lanes.size, heldBytesMax });
}

transport.listen({
  onFrame(from, edge, frame) {
    const at = lane(from, edge);
    const fault = faultOf(traffic, { from, to: slot, edge }, at.received++, frame);
    if (fault !== undefined) report({ kind: 'fault', text: fault });
    if (stalled) {
      at.heldBytes += frame.length;
      heldBytesMax = Math.max(heldBytesMax, at.heldBytes);
    } else transport.grant(from, edge, frame.length);
    checkDone();
  },
  onCredit(to, edge, bytes) {
    lane(to, edge).credit += bytes;
    sendMore(lane(to, edge));
  },
  onBroken(peer, reason) {
    const { code, kind } = MillraceError.from(reason);
    report({ kind: 'broken', peer, code, errorKind: kind });
  },
});
for (const to of lanes.values()) sendMore(to);

parentPort?.on('message', (command: SlotWorkerCommand) => {
  if (command.kind === 'close') {
    transport.close(command.reason === undefined ? undefined : new MillraceError('unexpected', command.reason));
    parentPort?.close();
    return;
  }
  stalled = false;
  for (const { peer, edge, heldBytes } of lanes.values()) if (heldBytes > 0) transport.grant(peer, edge, heldBytes);
});

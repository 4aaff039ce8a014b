import type { MessagePort } from 'node:worker_threads';
import type { ErrorJson } from '@millrace/kernel';

/**
 * What travels between the two ends of a pair of slots: another worker thread, or the runner's main thread, which
 * stands in for a slot of another process. One port joins one pair, so no message names a slot.
 */
export type PortMessage =
  | { readonly kind: 'frame'; readonly edge: number; readonly frame: Uint8Array<ArrayBuffer> }
  | { readonly kind: 'credit'; readonly edge: number; readonly bytes: number }
  /** The peer can give and take nothing more, and the attempt with it. */
  | { readonly kind: 'broken'; readonly error: ErrorJson }
  /** The peer has finished; its port closes and that is no failure. */
  | { readonly kind: 'bye' };

export function post(port: MessagePort, message: PortMessage): void {
  port.postMessage(message);
}

/**
 * Hands a frame over. Its ArrayBuffer is transferred when the frame fills at least half of it; a small view of a large
 * buffer is copied first, for the receiver would hold the whole buffer while credit counts only the view (and a view
 * of Node's pool, which may not be transferred, is always smaller than half of it).
 */
export function postFrame(port: MessagePort, edge: number, frame: Uint8Array<ArrayBuffer>): void {
  const whole = frame.byteLength * 2 >= frame.buffer.byteLength;
  const owned = whole ? frame : new Uint8Array(frame); // a copy, which Buffer.slice would not be
  const message: PortMessage = { kind: 'frame', edge, frame: owned };
  if (owned.byteLength === 0) port.postMessage(message);
  else port.postMessage(message, [owned.buffer]);
}

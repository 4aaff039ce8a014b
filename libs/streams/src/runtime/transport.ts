/**
 * How a slot exchanges frames with the other slots of its attempt. A channel is one ordered stream of frames from one
 * slot to another for one edge of the job graph. Flow control is by byte credits: a receiver grants, a sender
 * sends a frame only while it has credit (it may overdraw by one frame), so a slow reader bounds its writer's memory.
 */
export interface SlotTransport {
  /** Hands the frame over; `frame` is transferred and must not be touched again. */
  send(toSlot: number, edge: number, frame: Uint8Array<ArrayBuffer>): void;
  /** Allows the sender of (`fromSlot`, `edge`) to send `bytes` more; the first grant opens the window. */
  grant(fromSlot: number, edge: number, bytes: number): void;
  /**
   * Sets who receives; called once, before the first frame. What peers sent before is kept and delivered after it, in
   * a later turn of the event loop. Frames and credit never arrive inside a call of this port.
   */
  listen(listener: SlotListener): void;
}

export interface SlotListener {
  onFrame(fromSlot: number, edge: number, frame: Uint8Array): void;
  onCredit(toSlot: number, edge: number, bytes: number): void;
  /** The peer is gone; the attempt cannot go on. */
  onBroken(peerSlot: number, reason: Error): void;
}

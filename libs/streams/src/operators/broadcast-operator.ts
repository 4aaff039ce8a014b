import { assert } from '@millrace/kernel';
import type { StateShape } from '@millrace/state';
import type { TraceContext } from '@millrace/telemetry';
import type { BroadcastShape, BroadcastSpec, KeyedBroadcastSpec } from '../api/broadcast.ts';
import type { KeyedLogic } from '../api/process.ts';
import type { Operator, OperatorContext, OperatorPart } from '../runtime/operator.ts';
import { BaseOperator } from './base-operator.ts';
import { BroadcastState } from './broadcast-state.ts';
import type { KeyedOperator } from './keyed-operator.ts';
import { PlainCall } from './plain-call.ts';

/** The input that every subtask gets whole. */
const broadcastInput = 1;

/** The broadcast side of an operator. */
type Broadcaster = Pick<BroadcastSpec<never, never, BroadcastShape, never>, 'broadcast' | 'onBroadcast'>;

class BroadcastSide {
  readonly state: BroadcastState<BroadcastShape>;
  readonly #spec: Broadcaster;
  #call: PlainCall | undefined;

  constructor(spec: Broadcaster) {
    this.#spec = spec;
    this.state = new BroadcastState(spec.broadcast);
  }

  open(context: OperatorContext): void {
    this.#call = new PlainCall(context.output);
    this.state.restore(context);
  }

  get call(): PlainCall {
    assert(this.#call !== undefined, 'operator used before it was opened');
    return this.#call;
  }

  apply(record: unknown, timestampMs: number): void {
    this.call.timestampMs = timestampMs;
    this.#spec.onBroadcast(record as never, this.state.writable, this.call as never);
  }

  part(): OperatorPart {
    return { list: this.state.snapshot() };
  }
}

/** A stream without key beside a broadcast one. */
export class BroadcastOperator extends BaseOperator {
  readonly #spec: BroadcastSpec<never, never, BroadcastShape, never>;
  readonly #side: BroadcastSide;

  constructor(spec: BroadcastSpec<never, never, BroadcastShape, never>) {
    super();
    this.#spec = spec;
    this.#side = new BroadcastSide(spec);
  }

  override open(context: OperatorContext): void {
    void super.open(context);
    this.#side.open(context);
  }

  override record(value: unknown, timestampMs: number, input: number): void {
    if (input === broadcastInput) return this.#side.apply(value, timestampMs);
    const { call, state } = this.#side;
    call.timestampMs = timestampMs;
    this.#spec.onRecord(value as never, state.maps, call as never);
  }

  override snapshot(): Promise<OperatorPart> {
    return Promise.resolve(this.#side.part());
  }
}

/** A keyed operator beside a broadcast stream: broadcast records have their turn when no keyed one is under way. */
export class KeyedBroadcastOperator implements Operator {
  readonly #keyed: KeyedOperator;
  readonly #side: BroadcastSide;

  /** `keyedBy` makes the keyed operator of the logic. */
  constructor(
    spec: KeyedBroadcastSpec<never, never, never, BroadcastShape, StateShape, never>,
    keyedBy: (logic: KeyedLogic) => KeyedOperator,
  ) {
    this.#side = new BroadcastSide(spec);
    this.#keyed = keyedBy(logicOf(spec, this.#side.state));
  }

  async open(context: OperatorContext): Promise<void> {
    this.#side.open(context);
    await this.#keyed.open(context);
  }

  record(value: unknown, timestampMs: number, input: number): void | Promise<void> {
    if (input !== broadcastInput) return this.#keyed.record(value, timestampMs, input);
    return this.#keyed.between(() => this.#side.apply(value, timestampMs));
  }

  watermark(watermarkMs: number): void | Promise<void> {
    return this.#keyed.watermark(watermarkMs);
  }

  status(idle: boolean): void | Promise<void> {
    return this.#keyed.status(idle);
  }

  drain(): void | Promise<void> {
    return this.#keyed.drain();
  }

  async snapshot(checkpoint: number, parent?: TraceContext): Promise<OperatorPart> {
    const part = this.#side.part();
    return { ...(await this.#keyed.snapshot(checkpoint, parent)), ...part };
  }

  complete(): void {}

  abort(): void {}

  inFlight(): number {
    return this.#keyed.inFlight();
  }

  buffered(): number {
    return this.#keyed.buffered();
  }

  close(): Promise<void> {
    return this.#keyed.close();
  }
}

function logicOf(
  spec: KeyedBroadcastSpec<never, never, never, BroadcastShape, StateShape, never>,
  { maps }: BroadcastState<BroadcastShape>,
): KeyedLogic {
  const onTimer = spec.onTimer?.bind(spec);
  const onProcessingTimer = spec.onProcessingTimer?.bind(spec);
  return {
    shape: spec.state ?? {},
    onRecord: (record, _input, ctx) => spec.onRecord(record as never, maps, ctx as never),
    ...(onTimer === undefined ? {} : { onTimer: (timeMs, ctx) => onTimer(timeMs, maps, ctx as never) }),
    ...(onProcessingTimer === undefined
      ? {}
      : { onProcessingTimer: (timeMs, ctx) => onProcessingTimer(timeMs, maps, ctx as never) }),
  };
}

import { describe, expect, it } from 'vitest';
import { AsyncExecutionController } from './controller.ts';
import type { Epoch } from './epoch.ts';
import type { AecOptions } from './options.ts';

/** All microtasks have run. */
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

interface Rig {
  readonly aec: AsyncExecutionController<string, string>;
  readonly log: string[];
  /** Ends (or fails) the record in flight of this name. */
  readonly finish: (record: string, error?: Error) => Promise<void>;
  readonly failures: unknown[];
}

/** Records named `…!` are synchronous, others are in flight until `finish`. */
function rig(options: Partial<AecOptions<string, string>> = {}): Rig {
  const log: string[] = [];
  const failures: unknown[] = [];
  const open = new Map<string, PromiseWithResolvers<void>>();
  const aec = new AsyncExecutionController<string, string>({
    handle(record) {
      log.push(record);
      if (record.endsWith('!')) return undefined;
      const deferred = Promise.withResolvers<void>();
      open.set(record, deferred);
      return deferred.promise.then(() => void log.push(`${record} done`));
    },
    onFailure: (error) => failures.push(error),
    ...options,
  });
  return {
    aec,
    log,
    failures,
    finish(record, error) {
      const deferred = open.get(record);
      if (deferred === undefined) throw new Error(`${record} is not in flight`);
      open.delete(record);
      if (error === undefined) deferred.resolve();
      else deferred.reject(error);
      return settled();
    },
  };
}

function state(promise: void | Promise<void>): { now: 'done' | 'waiting' | 'failed' } {
  const seen: { now: 'done' | 'waiting' | 'failed' } = { now: promise === undefined ? 'done' : 'waiting' };
  promise?.then(
    () => (seen.now = 'done'),
    () => (seen.now = 'failed'),
  );
  return seen;
}

describe('records of one key', () => {
  it('run one at a time in arrival order while other keys go ahead', async () => {
    const { aec, log, finish } = rig();
    void aec.admit('a', 'a1');
    void aec.admit('a', 'a2');
    void aec.admit('b', 'b1!');
    expect([log, aec.inFlight, aec.buffered]).toEqual([['a1', 'b1!'], 2, 1]);
    await finish('a1');
    expect([log, aec.buffered]).toEqual([['a1', 'b1!', 'a1 done', 'a2'], 0]);
    await finish('a2');
    expect(aec.drain()).toBeUndefined();
  });

  it('do not overflow the stack when 100,000 wait and all finish at once', async () => {
    let sum = 0;
    const first = Promise.withResolvers<void>();
    const aec = new AsyncExecutionController<string, number>({
      inFlightLimit: 200_000,
      handle: (n) => (n === 0 ? first.promise : void (sum += n)),
    });
    for (let n = 0; n <= 100_000; n++) expect(aec.admit('a', n)).toBeUndefined();
    first.resolve();
    await aec.drain();
    expect([sum, aec.inFlight, aec.buffered]).toEqual([5_000_050_000, 0, 0]);
  });

  it('may use a handler that returns something other than a promise, or a thenable', async () => {
    const done: string[] = [];
    const aec = new AsyncExecutionController<string, string>({
      handle: ((record: string) =>
        record === 'query'
          ? // oxlint-disable-next-line unicorn/no-thenable -- such a query builder is what is tested
            { then: (resolve: () => void) => setImmediate(() => (done.push(record), resolve())) }
          : new Map()) as unknown as (record: string) => void,
    });
    void aec.admit('a', 'map');
    expect(aec.inFlight).toBe(0);
    void aec.admit('a', 'query');
    expect(aec.inFlight).toBe(1);
    await aec.drain();
    expect(done).toEqual(['query']);
  });
});

describe('the in-flight limit', () => {
  it('stops the input, counting records that wait for their key', async () => {
    const { aec, log, finish } = rig({ inFlightLimit: 2 });
    expect(aec.admit('a', 'a1')).toBeUndefined();
    expect(aec.admit('a', 'a2')).toBeUndefined();
    const third = state(aec.admit('b', 'b1'));
    await settled();
    expect([third.now, log, aec.inFlight]).toEqual(['waiting', ['a1'], 2]);
    await finish('a1');
    expect([third.now, log, aec.inFlight]).toEqual(['done', ['a1', 'a1 done', 'a2', 'b1'], 2]);
  });

  it('of 1 is the synchronous mode: no record starts before the one before it is finished', async () => {
    const { aec, log, finish } = rig({ inFlightLimit: 1 });
    void aec.admit('a', 'a1');
    const second = state(aec.admit('b', 'b1!'));
    await settled();
    expect([second.now, log]).toEqual(['waiting', ['a1']]);
    await finish('a1');
    expect([second.now, log]).toEqual(['done', ['a1', 'a1 done', 'b1!']]);
  });

  it('runs the next record of a finished key before new input', async () => {
    const { aec, log, finish } = rig({ inFlightLimit: 2 });
    void aec.admit('a', 'a1');
    void aec.admit('a', 'a2!');
    void aec.admit('c', 'c1!');
    await finish('a1');
    expect(log).toEqual(['a1', 'a1 done', 'a2!', 'c1!']);
  });

  it('refuses an input loop that does not wait for it', () => {
    const { aec } = rig({ inFlightLimit: 1 });
    void aec.admit('a', 'a1');
    void aec.admit('b', 'b1');
    expect(() => aec.admit('c', 'c1')).toThrow(/before the promise/);
  });

  it.each([0, -1, 1.5, Number.NaN])('of %d is refused', (inFlightLimit) => {
    expect(() => rig({ inFlightLimit })).toThrow(/inFlightLimit/);
  });
});

describe('watermarks', () => {
  it('pass at once, without a promise, when nothing is in flight', () => {
    const { aec, log } = rig();
    void aec.admit('a', 'a1!');
    expect(aec.watermark(() => log.push('W1'))).toBeUndefined();
    expect(log).toEqual(['a1!', 'W1']);
  });

  it('wait for the records before them; serial mode holds back the input', async () => {
    const { aec, log, finish } = rig();
    void aec.admit('a', 'a1');
    const watermark = state(aec.watermark(() => log.push('W1')));
    expect(() => aec.admit('b', 'b1')).toThrow(/before the promise/);
    await finish('a1');
    expect([watermark.now, log]).toEqual(['done', ['a1', 'a1 done', 'W1']]);
  });

  it('of the parallel mode keep their order while later records start and finish first', async () => {
    const { aec, log, finish } = rig({ watermarks: 'parallel' });
    void aec.admit('a', 'a1');
    expect(aec.watermark(() => log.push('W1'))).toBeUndefined();
    void aec.admit('b', 'b1');
    expect(aec.watermark(() => log.push('W2'))).toBeUndefined();
    await finish('b1');
    expect([log, aec.watermarksWaiting]).toEqual([['a1', 'b1', 'b1 done'], 2]);
    await finish('a1');
    expect(log.slice(3)).toEqual(['a1 done', 'W1', 'W2']);
  });

  it('of the parallel mode stop the input when too many wait', async () => {
    const { aec, log, finish } = rig({ watermarks: 'parallel', watermarksWaitingMax: 2 });
    void aec.admit('a', 'a1');
    expect(aec.watermark(() => log.push('W1'))).toBeUndefined();
    expect(aec.watermark(() => log.push('W2'))).toBeUndefined();
    const third = state(aec.watermark(() => log.push('W3')));
    await settled();
    expect(third.now).toBe('waiting');
    await finish('a1');
    expect([third.now, log.slice(2)]).toEqual(['done', ['W1', 'W2', 'W3']]);
  });

  it('pass by the hundred thousand behind one slow record without deepening the stack', async () => {
    const { aec, finish } = rig({ watermarks: 'parallel', watermarksWaitingMax: 1_000_000 });
    let passed = 0;
    void aec.admit('a', 'a1');
    for (let i = 0; i < 300_000; i++) void aec.watermark(() => passed++);
    expect(passed).toBe(0);
    await finish('a1');
    expect(passed).toBe(300_000);
    for (let i = 0; i < 300_000; i++) void aec.watermark(() => passed++);
    expect([passed, aec.watermarksWaiting]).toEqual([600_000, 0]);
  });

  it('wait for timers that are fired in portions, also when those before have finished', async () => {
    const { aec, log, finish } = rig({ inFlightLimit: 1 });
    const watermark = state(
      aec.watermark(
        () => log.push('W'),
        async () => {
          for (const timer of ['t1', 't2']) {
            for (let wait = aec.room(); wait !== undefined; wait = aec.room()) await wait;
            aec.derive(timer, timer);
          }
        },
      ),
    );
    await settled();
    expect(log).toEqual(['t1']);
    await finish('t1');
    expect([watermark.now, log]).toEqual(['waiting', ['t1', 't1 done', 't2']]);
    await finish('t2');
    expect([watermark.now, log.slice(3)]).toEqual(['done', ['t2 done', 'W']]);
  });

  it('that arrive while timers fire in portions leave the timers to the watermark that fires them', async () => {
    const { aec, log, finish } = rig({ watermarks: 'parallel' });
    const portion = Promise.withResolvers<void>();
    void aec.watermark(
      () => log.push('W1'),
      async () => {
        await portion.promise;
        aec.derive('a', 't1');
      },
    );
    void aec.watermark(() => log.push('W2'));
    portion.resolve();
    await settled();
    expect(log).toEqual(['t1']);
    await finish('t1');
    expect(log).toEqual(['t1', 't1 done', 'W1', 'W2']);
  });

  it('may not be given by what a watermark calls', async () => {
    const { aec, failures } = rig();
    expect(() => aec.watermark(() => void aec.watermark(() => undefined))).toThrow(/own controller a watermark/);
    expect(failures).toHaveLength(1);
  });
});

describe('derived work', () => {
  it('goes before waiting input of its key, in its own order', async () => {
    const { aec, log, finish } = rig();
    void aec.admit('a', 'a1');
    void aec.admit('a', 'a2!');
    aec.derive('a', 't1!');
    aec.derive('a', 't2!');
    await finish('a1');
    expect(log).toEqual(['a1', 'a1 done', 't1!', 't2!', 'a2!']);
  });

  it('of the own or of another key starts when the handler that made it has returned', async () => {
    const log: string[] = [];
    const aec: AsyncExecutionController<string, string> = new AsyncExecutionController({
      handle(record: string) {
        log.push(`${record} starts`);
        if (record === 'parent') {
          aec.derive('a', 'own');
          aec.derive('b', 'other');
        }
        log.push(`${record} ends`);
      },
    });
    void aec.admit('a', 'parent');
    expect(log).toEqual(['parent starts', 'parent ends', 'own starts', 'own ends', 'other starts', 'other ends']);
    expect(aec.inFlight).toBe(0);
  });

  it('that derives 100,000 times in a row does not overflow the stack', () => {
    let last = 0;
    const aec: AsyncExecutionController<number, number> = new AsyncExecutionController({
      handle(n: number) {
        last = n;
        if (n < 100_000) aec.derive(n % 3, n + 1);
      },
    });
    void aec.admit(0, 0);
    expect([last, aec.inFlight, aec.buffered]).toEqual([100_000, 0, 0]);
  });

  it('made after an await holds the watermark of the record that made it', async () => {
    const log: string[] = [];
    const gates = { parent: Promise.withResolvers<void>(), child: Promise.withResolvers<void>() };
    const aec: AsyncExecutionController<string, 'parent' | 'child'> = new AsyncExecutionController({
      async handle(record: 'parent' | 'child', _key: string, epoch: Epoch) {
        await gates[record].promise;
        if (record === 'parent') aec.derive('b', 'child', epoch);
        log.push(record);
      },
    });
    void aec.admit('a', 'parent');
    const watermark = state(aec.watermark(() => log.push('W')));
    gates.parent.resolve();
    await settled();
    expect([watermark.now, log]).toEqual(['waiting', ['parent']]);
    gates.child.resolve();
    await settled();
    expect([watermark.now, log]).toEqual(['done', ['parent', 'child', 'W']]);
  });

  it('for an epoch whose watermark has left fails the task', () => {
    let kept: Epoch | undefined;
    const failures: unknown[] = [];
    const aec = new AsyncExecutionController<string, string>({
      handle: (_record, _key, epoch) => void (kept = epoch),
      onFailure: (error) => failures.push(error),
    });
    void aec.admit('a', 'a1');
    void aec.watermark(() => undefined);
    expect(() => aec.derive('b', 'late', kept)).toThrow(/derived after the record/);
    expect(failures).toEqual([expect.objectContaining({ code: 'aec-access-after-finish' })]);
  });

  it('has to be derived: a handler that feeds its own controller is refused in words', () => {
    const failures: unknown[] = [];
    const aec: AsyncExecutionController<string, string> = new AsyncExecutionController({
      handle: () => aec.admit('b', 'again'),
      onFailure: (error: unknown) => failures.push(error),
    });
    expect(() => aec.admit('a', 'a1')).toThrow(/derive work instead/);
    expect(failures).toHaveLength(1);
  });
});

describe('the first failure', () => {
  it('stops everything: no handler starts, no watermark leaves, all who wait hear of it, once', async () => {
    const { aec, log, finish, failures } = rig({ inFlightLimit: 3 });
    void aec.admit('a', 'a1');
    void aec.admit('a', 'a2');
    void aec.admit('b', 'b1');
    const parked = state(aec.admit('c', 'c1'));
    const drained = state(aec.drain());
    const room = state(aec.room());
    const boom = new Error('boom');
    await finish('a1', boom);
    expect([parked.now, drained.now, room.now]).toEqual(['failed', 'failed', 'failed']);
    await finish('b1', new Error('later'));
    expect(log).toEqual(['a1', 'b1']);
    expect([failures, aec.failure, aec.inFlight, aec.buffered]).toEqual([[boom], boom, 0, 0]);
    for (const call of [
      () => aec.admit('d', 'd1'),
      () => aec.derive('d', 'd1'),
      () => aec.watermark(() => log.push('W')),
      () => aec.drain(),
      () => aec.room(),
    ]) {
      expect(call).toThrow(boom);
    }
    expect(log).toEqual(['a1', 'b1']);
  });

  it('of a synchronous handler is thrown by admit', () => {
    const boom = new Error('boom');
    const { aec, failures } = rig({
      handle() {
        throw boom;
      },
    });
    expect(() => aec.admit('a', 'a1')).toThrow(boom);
    expect(failures).toEqual([boom]);
  });

  it('of a timer, of its advance or of an emit keeps the watermark back', async () => {
    const boom = new Error('boom');
    const raise = (): never => {
      throw boom;
    };
    const advances: Array<[advance: () => void | Promise<void>, emit: () => void]> = [
      [raise, () => undefined],
      [() => Promise.reject(boom), () => undefined],
      [() => undefined, raise],
    ];
    for (const [advance, emit] of advances) {
      const { aec, failures, log } = rig({ watermarks: 'parallel' });
      const input = async (): Promise<void> => {
        await aec.watermark(emit, advance);
        await aec.watermark(() => log.push('W2'));
        await aec.drain();
      };
      await expect(input()).rejects.toBe(boom);
      expect([failures, log]).toEqual([[boom], []]);
    }
  });

  it('is an Error even when a handler throws something else', () => {
    const { aec } = rig();
    aec.fail('text');
    expect(aec.failure).toMatchObject({ name: 'MillraceError', message: 'text' });
  });
});

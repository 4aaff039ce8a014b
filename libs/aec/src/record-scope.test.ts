import { describe, expect, it } from 'vitest';
import { AsyncExecutionController } from './controller.ts';
import { RecordScope } from './record-scope.ts';

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** A counter behind a slow store, as state handles use the scope. */
class Counter {
  value = 0;
  readonly scope: RecordScope;
  constructor(scope: RecordScope) {
    this.scope = scope;
  }
  get(): Promise<number> {
    this.scope.enter('count.get');
    return this.scope.track(
      'count.get',
      settled().then(() => this.value),
    ) as Promise<number>;
  }
  put(value: number): Promise<void> {
    this.scope.enter('count.put');
    return this.scope.track(
      'count.put',
      settled().then(() => void (this.value = value)),
    ) as Promise<void>;
  }
  /** At hand. */
  peek(): number {
    this.scope.enter('count.peek');
    return this.scope.track('count.peek', this.value) as number;
  }
}

function counter(): Counter {
  return new Counter(new RecordScope('operator count, key a'));
}

describe('a handler', () => {
  it('that awaits its accesses finishes', async () => {
    const count = counter();
    await count.scope.seal((async () => count.put((await count.get()) + 1))());
    expect([count.value, count.scope.pending]).toEqual([1, 0]);
  });

  it('that makes accesses together and awaits them finishes', async () => {
    const count = counter();
    await count.scope.seal(
      (async () => {
        await Promise.all([count.get(), count.put(3), count.get()]);
      })(),
    );
    expect(count.value).toBe(3);
  });

  it('that needs no promise gets none', () => {
    const count = counter();
    expect(count.peek()).toBe(0);
    expect(count.scope.seal(undefined)).toBeUndefined();
  });

  it('that forgets an await fails, with the access and what to do', async () => {
    const count = counter();
    const handler = async (): Promise<void> => {
      const value = await count.get();
      void count.put(value + 1);
    };
    await expect(count.scope.seal(handler())).rejects.toMatchObject({
      code: 'aec-unawaited-access',
      message: expect.stringMatching(/operator count, key a.*1 state access was pending.*count\.put.*await/) as string,
    });
  });

  it('that is synchronous and forgets an await fails', () => {
    const count = counter();
    void count.get();
    void count.put(1);
    expect(() => count.scope.seal(undefined)).toThrow(/2 state accesses were pending \(the first: count\.get\)/);
  });

  it('that uses state from a callback after it has finished fails there', async () => {
    const count = counter();
    expect(count.scope.seal(undefined)).toBeUndefined();
    expect(() => count.peek()).toThrow(expect.objectContaining({ code: 'aec-access-after-finish' }));
    await expect(async () => count.get()).rejects.toThrow(/count\.get came after the record had finished/);
  });

  it('that throws is reported with its own error, and its context is closed', async () => {
    const count = counter();
    const boom = new Error('boom');
    void count.get();
    await expect(count.scope.seal(Promise.reject(boom))).rejects.toBe(boom);
    expect(() => count.peek()).toThrow(/after the record/);
    const other = counter();
    other.scope.close();
    expect(() => other.peek()).toThrow(/after the record/);
  });

  it('that swallows a failed access fails all the same, awaited or not', async () => {
    const lost = new Error('lost');
    for (const awaited of [true, false]) {
      const { scope } = counter();
      const handler = async (): Promise<void> => {
        const access = scope.track('count.put', Promise.reject(lost)) as Promise<void>;
        if (awaited) await access.catch(() => undefined);
        else await settled();
      };
      await expect(scope.seal(handler())).rejects.toBe(lost);
    }
  });
});

it('a forgotten await loses no update silently: the task fails before the next record of the key', async () => {
  let store = 0;
  const aec = new AsyncExecutionController<string, number>({
    handle() {
      const scope = new RecordScope('operator count');
      const increment = async (): Promise<void> => {
        const value =
          (await scope.track(
            'count.get',
            settled().then(() => store),
          )) + 1;
        scope.enter('count.put');
        void scope.track(
          'count.put',
          settled().then(() => (store = value)),
        );
      };
      return scope.seal(increment());
    },
  });
  for (let i = 0; i < 10; i++) void aec.admit('a', i);
  await expect(aec.drain()).rejects.toMatchObject({ code: 'aec-unawaited-access' });
  expect(aec.buffered).toBe(0);
});

import { describe, expect, it } from 'vitest';
import { PartWriter } from './part-writer.ts';

function target(partBytes: number) {
  const done: string[] = [];
  const gates = new Map<number, PromiseWithResolvers<void>>();
  return {
    done,
    /** Makes the part with this number wait. */
    hold(number: number): PromiseWithResolvers<void> {
      const gate = Promise.withResolvers<void>();
      gates.set(number, gate);
      return gate;
    },
    partBytes,
    async part(number: number, bytes: Uint8Array): Promise<void> {
      await gates.get(number)?.promise;
      done.push(`part ${number}: ${Buffer.from(bytes).toString()}`);
    },
    async whole(bytes: Uint8Array): Promise<void> {
      done.push(`whole: ${Buffer.from(bytes).toString()}`);
    },
    async complete(parts: number): Promise<void> {
      done.push(`complete ${parts}`);
    },
    async discard(): Promise<void> {
      done.push('discard');
    },
  };
}

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

describe('a writer in parts', () => {
  it('sends what fits in one part, to the byte, as one file', async () => {
    const to = target(4);
    const writer = new PartWriter(to);
    await writer.append(bytes('ab'));
    await writer.append(bytes('cd'));
    await writer.close();
    expect(to.done).toEqual(['whole: abcd']);
  });

  it('cuts what is larger, also within one append, and completes with the number of parts', async () => {
    const to = target(4);
    const writer = new PartWriter(to);
    await writer.append(bytes('abcdefghi'));
    await writer.append(bytes('j'));
    await writer.close();
    expect(to.done).toEqual(['part 0: abcd', 'part 1: efgh', 'part 2: ij', 'complete 3']);
  });

  it('takes no more while two parts are on their way', async () => {
    const to = target(1);
    const gates = [to.hold(0), to.hold(1)];
    const writer = new PartWriter(to);
    let isTaken = false;
    const append = writer.append(bytes('abcd')).then(() => (isTaken = true));
    await new Promise((resolve) => setImmediate(resolve));
    expect(isTaken).toBe(false);
    for (const gate of gates) gate.resolve();
    await append;
    await writer.close();
    expect(to.done.at(-1)).toBe('complete 4');
  });

  it('tells the failure of a part at the latest at close, publishes nothing and discards what was sent', async () => {
    const to = target(1);
    const gate = to.hold(1);
    const writer = new PartWriter(to);
    await writer.append(bytes('abc'.slice(0, 2)));
    gate.reject(new Error('no part'));
    await expect(writer.close()).rejects.toThrow('no part');
    expect(to.done).toEqual(['part 0: a', 'discard']);
    await expect(writer.append(bytes('x'))).rejects.toThrow('aborted');
  });

  it('asks for nothing to be discarded when nothing was sent', async () => {
    const to = target(10);
    const writer = new PartWriter(to);
    await writer.append(bytes('abc'));
    await writer.abort();
    await writer.abort();
    expect(to.done).toEqual([]);
  });
});

import { SeededRandom } from '@millrace/kernel';
import { expect, it } from 'vitest';
import { byCodeUnits } from './key-order.ts';

const seed = Number(process.env.MILLRACE_SEED ?? 7);

it(`any set of paths in the order of UTF-8 comes out in the order of code units (seed ${seed})`, async () => {
  const random = new SeededRandom(seed);
  const alphabet = ['a', '/', 'é', '\uffee', '\ue000', '😀', '𐀀', 'z'];
  for (let round = 0; round < 300; round++) {
    const paths = new Set<string>();
    for (let i = 0; i < 30; i++) {
      const length = 1 + random.below(4);
      paths.add(Array.from({ length }, () => alphabet[random.below(alphabet.length)]).join(''));
    }
    const byBytes = [...paths].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
    const given: string[] = [];
    for await (const { path } of byCodeUnits(asEntries(byBytes))) given.push(path);
    expect(given).toEqual([...paths].sort());
  }
});

async function* asEntries(paths: readonly string[]): AsyncGenerator<{ path: string }> {
  for (const path of paths) yield { path };
}

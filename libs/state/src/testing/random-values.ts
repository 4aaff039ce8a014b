import type { Random } from '@millrace/kernel';
import type { KeyValue } from '../keys/key-value.ts';

const numbers = [
  0,
  -0,
  1,
  -1,
  63,
  64,
  -64,
  0.5,
  -0.5,
  Number.NaN,
  Infinity,
  -Infinity,
  2 ** 31,
  2 ** 53 - 1,
  1e300,
  5e-324,
];
const units = [
  0x00, 0x01, 0x61, 0x62, 0x7f, 0x80, 0xff, 0x7ff, 0x800, 0xd7ff, 0xd800, 0xdbff, 0xdc00, 0xdfff, 0xe000, 0xffff,
];

export function randomString(random: Random): string {
  let text = '';
  for (let left = random.below(6); left > 0; left--)
    text += String.fromCharCode(units[random.below(units.length)] as number);
  return text;
}

/** Keys of every kind, with the values where encodings go wrong. */
export function randomKey(random: Random, depth = 0): KeyValue {
  switch (random.below(depth > 2 ? 7 : 9)) {
    case 0:
      return numbers[random.below(numbers.length)] as number;
    case 1:
      return random.below(2000) - 1000;
    case 2:
      return randomString(random);
    case 3:
      return random.below(2) === 0;
    case 4:
      return random.below(5) === 0 ? null : new Date(random.below(1000) - 500);
    case 5:
      return (BigInt(random.nextU32()) << BigInt(random.below(80))) * (random.below(2) === 0 ? 1n : -1n);
    case 6:
      return Uint8Array.from({ length: random.below(4) }, () => [0, 1, 254, 255][random.below(4)] as number);
    case 7:
      return Array.from({ length: random.below(3) }, () => randomKey(random, depth + 1));
    default:
      return Object.fromEntries(
        Array.from({ length: random.below(3) }, () => [randomString(random), randomKey(random, depth + 1)]),
      );
  }
}

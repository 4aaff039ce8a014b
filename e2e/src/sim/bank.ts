import { ByteWriter, keyGroupRange, type Random } from '@millrace/kernel';
import { packedItem, type StateTable, WriteBatch } from '@millrace/state';

export const maxParallelism = 16;
export const accounts = 24;
const openingBalance = 100;

/** Balances by account. Whatever is transferred, their sum stays. */
export type Balances = ReadonlyMap<number, number>;

export function openingBalances(): Map<number, number> {
  return new Map(Array.from({ length: accounts }, (_, account) => [account, openingBalance]));
}

export const totalBalance = accounts * openingBalance;

export function sumOf(balances: Balances): number {
  return [...balances.values()].reduce((sum, balance) => sum + balance, 0);
}

/** Moves money between some accounts. Resolves to those that it changed. */
export function transfer(balances: Map<number, number>, random: Random, transfers: number): number[] {
  const touched = new Set<number>();
  for (let i = 0; i < transfers; i++) {
    const [from, to] = [random.below(accounts), random.below(accounts)];
    const amount = random.below(20);
    balances.set(from, (balances.get(from) ?? 0) - amount);
    balances.set(to, (balances.get(to) ?? 0) + amount);
    touched.add(from).add(to);
  }
  return [...touched];
}

/** Writes the balances of these accounts, each to the table that owns it. All within one turn, as one record would. */
export function writeBalances(tables: readonly StateTable[], balances: Balances, touched: Iterable<number>): void {
  const batches = tables.map(() => new WriteBatch());
  for (const account of touched) {
    const group = account % maxParallelism;
    const index = tables.findIndex(({ spec }) => spec.keyGroups.start <= group && group <= spec.keyGroups.end);
    const batch = batches[index] as WriteBatch;
    batch.begin();
    batch.arena.u16be(group);
    batch.arena.utf8(`account ${account}`);
    batch.endKey();
    batch.arena.utf8(String(balances.get(account)));
    batch.put();
  }
  // Backpressure does not matter here; a failure shows at the next snapshot.
  for (const [i, table] of tables.entries()) void Promise.resolve(table.write(batches[i] as WriteBatch)).catch(ignored);
}

function ignored(): void {}

/** What the tables say. Reads every block. */
export async function readBalances(tables: readonly StateTable[]): Promise<Balances> {
  const balances = new Map<number, number>();
  for (const table of tables) {
    const { start, end } = table.spec.keyGroups;
    for await (const { keys, values } of table.scan({ start: groupKey(start), end: groupKey(end + 1) })) {
      for (let i = 0; i < keys.count; i++) {
        const key = Buffer.from(packedItem(keys, i).subarray(2)).toString();
        balances.set(Number(key.slice('account '.length)), Number(Buffer.from(packedItem(values, i)).toString()));
      }
    }
  }
  return balances;
}

/** How two readings differ; empty when they are the same. */
export function differences(found: Balances, expected: Balances): string[] {
  const all = new Set([...found.keys(), ...expected.keys()]);
  return [...all]
    .filter((account) => found.get(account) !== expected.get(account))
    .map((account) => `account ${account} has ${found.get(account)}, not ${expected.get(account)}`);
}

export function rangesOf(parallelism: number) {
  return Array.from({ length: parallelism }, (_, i) => keyGroupRange(i, parallelism, maxParallelism));
}

function groupKey(group: number): Uint8Array {
  const writer = new ByteWriter(2);
  writer.u16be(group);
  return writer.copy();
}

import { type Life, simulate } from './simulation.ts';
import type { Tally } from './world.ts';

/** `MILLRACE_SEED` replays one; `MILLRACE_SEEDS`, or `MILLRACE_CASES` of the soak, says how many to run. */
function seeds(usual: number): number[] {
  const { MILLRACE_SEED: one, MILLRACE_SEEDS: many, MILLRACE_CASES: cases } = process.env;
  if (one !== undefined) return [Number(one)];
  return Array.from({ length: Number(many ?? cases ?? usual) }, (_, i) => i + 1);
}

/** What went wrong, by seed, and what has never happened of what the simulation is about. */
export async function simulateAll(life: Life, about: readonly (keyof Tally)[], usual: number): Promise<string[]> {
  const total = new Map<keyof Tally, number>();
  const wrong: string[] = [];
  const all = seeds(usual);
  for (const [i, seed] of all.entries()) {
    const end = await simulate(seed, life).catch((error: unknown) => ({ wrong: [String(error)], tally: undefined }));
    for (const one of end.wrong.slice(0, 5)) wrong.push(`seed ${seed} (replay with MILLRACE_SEED=${seed}): ${one}`);
    for (const [name, count] of Object.entries(end.tally ?? {})) {
      total.set(name as keyof Tally, (total.get(name as keyof Tally) ?? 0) + count);
    }
    if (wrong.length > 20) break;
    if ((i + 1) % 100 === 0) console.log(`${i + 1} of ${all.length} seeds`, JSON.stringify(Object.fromEntries(total)));
  }
  const missed = about.filter((name) => (total.get(name) ?? 0) === 0).map((name) => `nothing was ${name}`);
  return all.length === 1 ? wrong : [...wrong, ...missed];
}

/** What is noticed of a saboteur, within a few seeds. */
export async function noticed(life: Life): Promise<string[]> {
  for (let seed = 1; seed <= 20; seed++) {
    const { wrong } = await simulate(seed, life).catch((error: unknown) => ({ wrong: [String(error)] }));
    if (wrong.length > 0) return wrong;
  }
  return [];
}

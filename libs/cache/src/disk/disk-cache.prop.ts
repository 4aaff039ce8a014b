import { SeededRandom } from '@millrace/kernel';
import { ManualClock } from '@millrace/kernel/testing';
import { noTelemetry } from '@millrace/telemetry';
import { expect, test } from 'vitest';
import { cachePolicies, cachePolicy } from '../policies/policies.ts';
import { directLink } from './direct-link.ts';
import { DiskCache } from './disk-cache.ts';
import { DiskFiles } from './disk-files.ts';
import { FakeDisk } from './testing/fake-disk.ts';
import { RemoteFiles } from './testing/remote-files.ts';

const first = Number(process.env['MILLRACE_SEED'] ?? 1);
const cases = Number(process.env['MILLRACE_CASES'] ?? 60);

interface Seen {
  readonly wrong: string[];
  hits: number;
  evictions: number;
  loads: number;
}

/** Readers, writers and scanners at once, with faults; the cache is closed and opened again now and then. */
async function run(seed: number): Promise<Seen> {
  const random = new SeededRandom(seed);
  const clock = new ManualClock(1_000_000);
  const bytesMax = 200_000 + random.below(400_000);
  const reserveBytes = random.below(100_000);
  const disk = new FakeDisk({ capacity: bytesMax + random.below(400_000), bytesMax, reserveBytes, random });
  if (random.below(3) === 0) disk.fullShare = 0.02;
  if (random.below(3) === 0) disk.stuckShare = 0.05;
  const remote = new RemoteFiles();
  for (let i = 0; i < 10; i++) remote.add(1 + random.below(120_000));
  const policyName = cachePolicies[seed % cachePolicies.length] as (typeof cachePolicies)[number];
  const seen: Seen = { wrong: [], hits: 0, evictions: 0, loads: 0 };

  async function use(files: DiskFiles, steps: number): Promise<void> {
    for (let step = 0; step < steps; step++) {
      const action = random.below(100);
      if (action < 12) await remote.write(files, 1 + random.below(120_000), 10_000 + random.below(60_000));
      else if (action < 15) {
        const through = files.create();
        await through.append(Buffer.alloc(random.below(50_000)));
        await through.abort();
      } else if (action < 17) files.forget([remote.files[random.below(remote.files.length)] as never]);
      else if (action < 19) damage();
      else if (action < 24) clock.advance(random.below(2000));
      else {
        const popular = random.below(2) === 0 ? Math.min(5, remote.files.length) : remote.files.length;
        const file = remote.files[remote.files.length - 1 - random.below(popular)];
        const answer = await remote.read(files, file as never, random);
        if (!answer.right) seen.wrong.push(`step ${step}: wrong bytes of ${file?.id}`);
        if (answer.cached) seen.hits++;
      }
    }
    files.close();
  }

  /** The disk changes behind the back of the cache. */
  function damage(): void {
    const names = [...disk.files.keys()];
    const name = names[random.below(Math.max(1, names.length))];
    const file = name === undefined ? undefined : disk.files.get(name);
    if (name === undefined || file === undefined || file.bytes.length === 0) return;
    if (random.below(2) === 0) disk.files.delete(name);
    else {
      file.bytes = Buffer.from(file.bytes);
      const at = random.below(file.bytes.length);
      file.bytes[at] = (file.bytes[at] as number) ^ (1 << random.below(8));
    }
  }

  for (let life = 0; life < 3; life++) {
    const cache = await DiskCache.open({
      disk,
      bytesMax,
      reserveBytes,
      policy: cachePolicy(policyName),
      fetch: remote.fetch,
      clock,
      random,
      log: noTelemetry.log,
    });
    const users = Array.from({ length: 4 }, (_, i) => {
      return new DiskFiles({ disk, link: directLink(cache), clock, random, scans: i === 3 });
    });
    await Promise.all(users.map((files) => use(files, 40)));
    await cache.close();
    if (cache.bytes > bytesMax) seen.wrong.push(`the books say ${cache.bytes} of ${bytesMax} bytes`);
    if (disk.bytes > cache.bytes) seen.wrong.push(`the books say ${cache.bytes}, the disk has ${disk.bytes}`);
    seen.evictions += cache.stats.evictions;
    seen.loads += cache.stats.loads;
  }
  return { ...seen, wrong: [...seen.wrong, ...disk.wrong] };
}

test(`in ${cases} random runs, with readers and writers at once and a disk that fails, the limits hold at every step and no read is wrong`, async () => {
  let [hits, evictions, loads] = [0, 0, 0];
  for (let seed = first; seed < first + cases; seed++) {
    const seen = await run(seed);
    expect(seen.wrong, `MILLRACE_SEED=${seed} MILLRACE_CASES=1`).toEqual([]);
    hits += seen.hits;
    evictions += seen.evictions;
    loads += seen.loads;
  }
  expect(hits).toBeGreaterThan(cases * 10);
  expect(evictions).toBeGreaterThan(cases);
  expect(loads).toBeGreaterThan(cases === 1 ? -1 : cases);
});

import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { TestStack } from './support/test-stack.ts';

const mib = 1024 * 1024;
const slotMemoryMib = 192;
/** What docs/operations.md says a process needs beside the memory of its one slot. */
const baseMib = 200 + 50;
const keys = 206_000;
const payloadBytes = 4000;

test.skipIf(!existsSync('/proc/self/status'))(
  `a runner whose slot may use ${slotMemoryMib} MiB keeps to it while state grows to four times as much (Linux)`,
  async () => {
    await using run = await TestStack.start({
      runners: 1,
      slots: 1,
      env: { MILLRACE_SLOT_MEMORY: `${slotMemoryMib}m` },
    });
    const pid = run.stack.pids['task-runner-1'] as number;
    const samples: number[] = [];
    const sampler = setInterval(() => samples.push(rssMib(pid)), 200);
    const job = await run.client.startJob({
      job: 'wordcount',
      checkpointIntervalMs: 2000,
      options: { keys, payloadBytes, records: keys + 4000, fill: true },
    });
    const end = await job.result();
    clearInterval(sampler);
    const { bytesPut, bytesLinked } = end.lastCheckpoint ?? { bytesPut: 0, bytesLinked: 0 };
    const peak = Math.max(...samples);
    const onDisk = directoryBytes(run.path('data/state/wordcount/files'));
    console.log(
      `peak ${peak.toFixed(0)} MiB of ${slotMemoryMib + baseMib}, state ${((bytesPut + bytesLinked) / mib).toFixed(0)} MiB, files ${(onDisk / mib).toFixed(0)} MiB`,
      samples.filter((_, i) => i % 25 === 0).map((sample) => Math.round(sample)),
    );
    expect(end).toMatchObject({ state: 'finished', generation: 1 });
    expect(bytesPut + bytesLinked).toBeGreaterThan(4 * slotMemoryMib * mib);
    expect(onDisk).toBeGreaterThan(4 * slotMemoryMib * mib);
    expect(samples.length).toBeGreaterThan(20);
    expect(peak).toBeLessThan(slotMemoryMib + baseMib);
  },
);

function rssMib(pid: number): number {
  const kib = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  return Number(kib) / 1024;
}

function directoryBytes(path: string): number {
  return readdirSync(path).reduce((total, name) => total + statSync(join(path, name)).size, 0);
}

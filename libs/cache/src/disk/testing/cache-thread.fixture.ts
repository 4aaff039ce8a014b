/** A thread that makes a file through the cache of its process, then reads it back; its parent gets what became of it. */
import { parentPort, workerData } from 'node:worker_threads';
import { systemClock as clock, SeededRandom } from '@millrace/kernel';
import { type DiskCachePlace, openDiskFiles } from '../open-disk-cache.ts';
import { RemoteFiles } from './remote-files.ts';

const { place, seed } = workerData as { place: DiskCachePlace; seed: number };
const random = new SeededRandom(seed);
const remote = new RemoteFiles();
for (let i = 0; i < seed; i++) remote.add(1);
const files = openDiskFiles(place, { clock, random });
const written = await remote.write(files, 300_000, 50_000);
const answers = await Promise.all(Array.from({ length: 10 }, () => remote.read(files, written, random)));
files.close();
parentPort?.postMessage(answers);

import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type Clock, MillraceError, type Timer } from '@millrace/kernel';
import type { EmitRecord, SourceReader, Split, SplitPosition } from '../api/source.ts';
import type { Poll } from '../runtime/operator.ts';
import { type BucketData, type BucketFile, bucketId, bucketOf } from './directory-state.ts';
import { type FileFormat, openFileRecords } from './file-records.ts';
import { inputError } from './files.ts';
import type { SplitRecords } from './sequential-reader.ts';

export interface DirectoryReaderOptions<T> {
  readonly directory: string;
  readonly match: (name: string) => boolean;
  readonly format: FileFormat<T>;
  readonly everyMs: number;
  readonly filesMax: number;
  readonly clock: Clock;
}

interface Bucket {
  readonly split: Split;
  readonly done: Set<string>;
  current: BucketFile | undefined;
  position: number;
}

/** Looks for files of its buckets again and again, and reads them one after the other in the order of their names. */
export class DirectoryReader<T> implements SourceReader<T> {
  readonly #options: DirectoryReaderOptions<T>;
  readonly #buckets = new Map<number, Bucket>();
  readonly #count: number;
  #found: ReadonlyArray<{ readonly bucket: Bucket; readonly file: BucketFile }> = [];
  #reading: { readonly bucket: Bucket; readonly records: SplitRecords<T> } | undefined;
  #lookedAtMs = Number.NEGATIVE_INFINITY;
  #timer: Timer | undefined;
  #closed = false;

  constructor(positions: readonly SplitPosition[], options: DirectoryReaderOptions<T>) {
    this.#options = options;
    const [first] = positions;
    this.#count = first === undefined ? 1 : bucketId(first.split).buckets;
    for (const { split, position } of positions) {
      const { done, current } = split.data as BucketData;
      this.#buckets.set(bucketId(split).index, { split, done: new Set(done), current, position });
    }
  }

  read(recordsMax: number, emit: EmitRecord<T>): Poll {
    const reading = this.#reading;
    if (reading === undefined) return this.#next();
    const { bucket, records } = reading;
    const poll = records.read(recordsMax, emit);
    bucket.position = records.position;
    if (poll !== 'end') return poll;
    bucket.done.add((bucket.current as BucketFile).name);
    bucket.current = undefined;
    bucket.position = 0;
    this.#reading = undefined;
    return records.close();
  }

  positions(): readonly SplitPosition[] {
    return [...this.#buckets.values()].map(({ split, done, current, position }) => {
      const data: BucketData = { done: [...done], ...(current === undefined ? {} : { current }) };
      return { split: { ...split, data }, position };
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#timer?.cancel();
    await this.#reading?.records.close();
    this.#reading = undefined;
  }

  /** Opens the next file, or looks for new ones, or waits until it is time to look. */
  async #next(): Promise<void> {
    const begun = [...this.#buckets.values()].find(({ current }) => current !== undefined);
    if (begun !== undefined) return this.#open(begun, begun.current as BucketFile);
    const [next, ...rest] = this.#found;
    if (next !== undefined) {
      this.#found = rest;
      return this.#open(next.bucket, next.file);
    }
    const { clock, everyMs } = this.#options;
    const waitMs = this.#lookedAtMs + everyMs - clock.monotonicMs();
    if (waitMs > 0) {
      return new Promise((resolve) => {
        this.#timer = clock.schedule(waitMs, resolve);
      });
    }
    this.#lookedAtMs = clock.monotonicMs();
    await this.#look();
  }

  async #open(bucket: Bucket, file: BucketFile): Promise<void> {
    const { directory, format } = this.#options;
    const { split } = bucket;
    const part: Split = { ...split, id: join(directory, file.name), data: { endBytes: file.endBytes } };
    const records = await openFileRecords(part, bucket.position, format);
    if (this.#closed) return records.close();
    bucket.current = file;
    this.#reading = { bucket, records };
  }

  async #look(): Promise<void> {
    const { directory, match, filesMax } = this.#options;
    const names = (await this.#list()).filter(match);
    if (names.length > filesMax) {
      throw new MillraceError(
        'source-input',
        `${directory} holds ${names.length} files, and filesMax is ${filesMax}: move away what was read`,
        { details: { directory, files: names.length } },
      );
    }
    const present = new Set(names);
    for (const { done } of this.#buckets.values()) {
      // What has left the directory needs not be remembered; under the same name another file is a new one.
      for (const name of done) if (!present.has(name)) done.delete(name);
    }
    const found: Array<{ bucket: Bucket; file: BucketFile }> = [];
    for (const name of names.toSorted()) {
      const bucket = this.#buckets.get(bucketOf(name, this.#count));
      if (bucket === undefined || bucket.done.has(name)) continue;
      const stats = await stat(join(directory, name)).catch(() => undefined); // it has left meanwhile
      if (stats?.isFile()) found.push({ bucket, file: { name, endBytes: stats.size } });
    }
    this.#found = found;
  }

  async #list(): Promise<readonly string[]> {
    const { directory } = this.#options;
    try {
      return await readdir(directory);
    } catch (cause) {
      throw inputError(directory, 'cannot be listed', cause);
    }
  }
}

import type { Dfs, DfsWriter } from '@millrace/dfs';
import type { FileRef } from '@millrace/ufs';
import { JobNamespace } from '@millrace/ufs';
import type { SimRecord } from './sim-record.ts';

/**
 * The store that all simulated processes share, and the oracle: it sees every effect in the moment when it happens. A file
 * that the newest record of some job names must not be deleted, and must be there when a record names it; no file is ever
 * created twice, or again after it was deleted.
 */
export class WatchedStore {
  readonly violations: string[] = [];
  readonly #inner: Dfs;
  readonly #holders = new Map<string, readonly string[]>();
  readonly #records = new Map<string, { readonly number: number; readonly value: SimRecord }>();
  /** Paths of all files ever created, true while they exist. */
  readonly #files = new Map<string, boolean>();

  constructor(inner: Dfs) {
    this.#inner = inner;
  }

  get jobs(): readonly string[] {
    return [...this.#records.keys()];
  }

  record(job: string): SimRecord | undefined {
    return this.#records.get(job)?.value;
  }

  /** Files that exist. */
  files(): string[] {
    return [...this.#files].flatMap(([path, exists]) => (exists ? [path] : [])).sort();
  }

  /** Files and objects that some job's newest record needs. */
  live(jobs: Iterable<string> = this.#records.keys()): { readonly files: Set<string>; readonly objects: Set<string> } {
    const files = new Set<string>();
    const objects = new Set<string>();
    for (const job of jobs) {
      for (const { path, holders } of this.record(job)?.checkpoints ?? []) {
        objects.add(path);
        for (const holder of holders) objects.add(holder);
        for (const file of holders.flatMap((holder) => this.#holders.get(holder) ?? [])) files.add(file);
      }
    }
    return { files, objects };
  }

  /** The store as a process gets it, before its own faults. */
  connect(): Dfs {
    return new Proxy(this.#inner, {
      get: (target, key) => {
        const watched = this.#watched[key as keyof Dfs];
        if (watched !== undefined) return watched;
        const member: unknown = Reflect.get(target, key);
        return typeof member === 'function' ? (member.bind(target) as unknown) : member;
      },
    });
  }

  readonly #watched: Partial<Dfs> = {
    remove: async (path) => {
      this.#removing(path);
      await this.#inner.remove(path);
    },
    putIfAbsent: async (path, bytes) => {
      const created = await this.#inner.putIfAbsent(path, bytes);
      if (created) this.#created(path, bytes);
      return created;
    },
    createWriter: async (path) => this.#watchedWriter(path, await this.#inner.createWriter(path)),
  };

  #watchedWriter(path: string, writer: DfsWriter): DfsWriter {
    return {
      append: (bytes) => writer.append(bytes),
      close: async () => {
        if (this.#files.has(path)) this.violations.push(`${path} is created again`);
        this.#files.set(path, true);
        await writer.close();
      },
      abort: () => writer.abort(),
    };
  }

  #created(path: string, bytes: Uint8Array): void {
    const [job = '', room = '', name = ''] = path.split('/');
    if (room === 'snapshots' || room === 'holders') {
      const { files } = bodyOf(bytes) as { readonly files: readonly FileRef[] };
      const namespace = new JobNamespace(decodeURIComponent(job));
      this.#holders.set(
        path,
        files.map((file) => namespace.pathOf(file)),
      );
    }
    if (room === 'record' && /^\d+$/.test(name)) this.#recordWritten(decodeURIComponent(job), Number(name), bytes);
  }

  #recordWritten(job: string, number: number, bytes: Uint8Array): void {
    // A writer that was held up may create a number that was collected long ago: nobody believes it.
    if (number <= (this.#records.get(job)?.number ?? 0)) return;
    const { value } = bodyOf(bytes) as { readonly value: SimRecord };
    this.#records.set(job, { number, value });
    for (const file of this.live().files) {
      if (this.#files.get(file) !== true) this.violations.push(`record ${number} of ${job}: ${file} does not exist`);
    }
  }

  #removing(path: string): void {
    const { files, objects } = this.live();
    if (files.has(path) || objects.has(path)) this.violations.push(`${path} is deleted and live`);
    if (this.#files.has(path)) this.#files.set(path, false);
  }
}

/** Of the envelope that every small object has: a head line, then JSON. */
function bodyOf(bytes: Uint8Array): unknown {
  const text = Buffer.from(bytes).toString();
  return JSON.parse(text.slice(text.indexOf('\n') + 1)) as unknown;
}

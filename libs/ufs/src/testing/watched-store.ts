import type { Dfs } from '@millrace/dfs';
import { decodeHolder, type Holder } from '../holder.ts';
import type { JobNamespace } from '../namespace.ts';
import { decodeVersion } from '../record/version.ts';

/** The job's record in the simulation: what a control plane would keep. */
export interface SimulatedRecord {
  readonly generation: number;
  readonly round: number;
  readonly checkpoints: readonly SimulatedCheckpoint[];
}

export interface SimulatedCheckpoint {
  readonly checkpoint: number;
  readonly generation: number;
  readonly path: string;
  readonly holders: readonly string[];
}

/** Who asks for a removal. */
export type Remover = 'subtask' | 'retention';

/**
 * The oracle of the model test: sees every effect on the shared store at the moment it happens and knows, from the
 * effects alone, what must not be deleted: the files that the newest record's holders name, those of pins that stand,
 * and those that the newest attempt's tables use.
 */
export class WatchedStore {
  readonly violations: string[] = [];
  readonly #inner: Dfs;
  readonly #namespace: JobNamespace;
  readonly #holders = new Map<string, Holder>();
  readonly #everNamed = new Set<string>();
  #record: { number: number; value: SimulatedRecord } | undefined;
  /** Files in use by the tables of each attempt's running process. */
  readonly tables = new Map<number, () => Iterable<string>>();
  /** Files of pins that stand. */
  readonly pins = new Map<string, readonly string[]>();

  constructor(inner: Dfs, namespace: JobNamespace) {
    this.#inner = inner;
    this.#namespace = namespace;
  }

  get record(): SimulatedRecord | undefined {
    return this.#record?.value;
  }

  /** Everything that must not be deleted now. */
  liveFiles(): Set<string> {
    const live = new Set<string>();
    for (const { holders } of this.record?.checkpoints ?? []) {
      for (const path of holders) for (const file of this.#holders.get(path)?.files ?? []) live.add(file.id);
    }
    for (const files of this.pins.values()) for (const id of files) live.add(id);
    for (const id of this.tables.get(this.record?.generation ?? 0)?.() ?? []) live.add(id);
    return live;
  }

  /** The store as one kind of process sees it. */
  as(remover: Remover): Dfs {
    return new Proxy(this.#inner, {
      get: (target, key) => {
        if (key === 'remove') {
          return (path: string) => {
            this.#removing(path, remover);
            return target.remove(path);
          };
        }
        if (key === 'putIfAbsent') {
          return async (path: string, bytes: Uint8Array) => {
            const created = await target.putIfAbsent(path, bytes);
            if (created) this.#created(path, bytes);
            return created;
          };
        }
        const member: unknown = Reflect.get(target, key);
        return typeof member === 'function' ? (member.bind(target) as unknown) : member;
      },
    });
  }

  #created(path: string, bytes: Uint8Array): void {
    if (path.startsWith(this.#namespace.snapshotsPrefix) || path.startsWith(this.#namespace.holdersPrefix)) {
      const holder = decodeHolder(path, bytes);
      this.#holders.set(path, holder);
      for (const file of holder.files) this.#everNamed.add(file.id);
    }
    const number = Number(path.slice(this.#namespace.recordDirectory.length + 1));
    if (!path.startsWith(this.#namespace.recordDirectory) || Number.isNaN(number)) return;
    if (number <= (this.#record?.number ?? 0)) return;
    this.#record = { number, value: decodeVersion<SimulatedRecord>(path, number, bytes).value };
  }

  #removing(path: string, remover: Remover): void {
    const id = this.#namespace.fileIdOf(path);
    if (id !== undefined) {
      if (this.liveFiles().has(id)) this.violations.push(`${remover} deletes live file ${id}`);
      if (remover === 'subtask' && this.#everNamed.has(id)) {
        this.violations.push(`a subtask deletes file ${id}, which a snapshot named`);
      }
    }
    for (const checkpoint of this.record?.checkpoints ?? []) {
      if (path === checkpoint.path || checkpoint.holders.includes(path)) {
        this.violations.push(`${remover} deletes ${path} of a registered checkpoint`);
      }
    }
  }
}

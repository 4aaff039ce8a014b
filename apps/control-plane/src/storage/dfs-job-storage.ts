import type { Dfs } from '@millrace/dfs';
import { MillraceError } from '@millrace/kernel';
import type { CheckpointContents, CheckpointEntry, JobRecord } from '@millrace/proto/control';
import type { JobStorage } from './job-storage.ts';

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** JobStorage on a DFS: everything of a job under its id. */
export class DfsJobStorage implements JobStorage {
  readonly #dfs: Dfs;

  constructor(dfs: Dfs) {
    this.#dfs = dfs;
  }

  async readRecord(id: string): Promise<JobRecord | undefined> {
    return (await this.#latest(id))?.record;
  }

  async updateRecord(id: string, change: (record: JobRecord | undefined) => JobRecord): Promise<JobRecord> {
    for (;;) {
      const latest = await this.#latest(id);
      const next = change(latest?.record);
      if (next === latest?.record) return next;
      const path = recordPath(id, (latest?.version ?? 0) + 1);
      if (await this.#dfs.putIfAbsent(path, encoder.encode(JSON.stringify(next)))) return next;
    }
  }

  async #latest(id: string): Promise<{ readonly version: number; readonly record: JobRecord } | undefined> {
    let path: string | undefined;
    for await (const entry of this.#dfs.list(`${id}/record/`)) path = entry.path;
    if (path === undefined) return undefined;
    const bytes = await this.#dfs.readAll(path);
    if (bytes === undefined) return await this.#latest(id);
    return { version: Number(path.slice(-20)), record: JSON.parse(decoder.decode(bytes)) as JobRecord };
  }

  async listJobs(): Promise<readonly string[]> {
    const ids = new Set<string>();
    for await (const entry of this.#dfs.list('')) {
      const [id, kind] = entry.path.split('/');
      if (kind === 'record' && id !== undefined) ids.add(id);
    }
    return [...ids];
  }

  async writeCheckpoint(id: string, path: string, contents: CheckpointContents): Promise<void> {
    await this.#dfs.put(`${id}/${path}`, encoder.encode(JSON.stringify(contents)));
  }

  async readCheckpoint(id: string, path: string): Promise<CheckpointContents> {
    const bytes = await this.#dfs.readAll(`${id}/${path}`);
    if (bytes === undefined) {
      throw new MillraceError('job-record-broken', `Checkpoint ${id}/${path} does not exist.`, {
        details: { id, path },
      });
    }
    return JSON.parse(decoder.decode(bytes)) as CheckpointContents;
  }

  async missingHolder(id: string, holders: readonly string[]): Promise<string | undefined> {
    const found = await Promise.all(holders.map((path) => this.#dfs.stat(path)));
    const at = found.indexOf(undefined);
    return at < 0 ? undefined : holders[at];
  }

  async hold(id: string, path: string, holders: readonly string[]): Promise<void> {
    await this.#dfs.put(`${id}/holders/${path.replaceAll('/', '-')}`, encoder.encode(JSON.stringify({ holders })));
  }

  async drop(id: string, dropped: readonly CheckpointEntry[]): Promise<readonly CheckpointEntry[]> {
    await Promise.all(dropped.map((entry) => this.#dfs.remove(`${id}/${entry.path}`)));
    return dropped;
  }
}

function recordPath(id: string, version: number): string {
  return `${id}/record/${String(version).padStart(20, '0')}`;
}

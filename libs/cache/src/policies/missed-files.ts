import type { PolicyFile } from './policy.ts';

/** Files whose reads missed since they were last asked for; the newest of them, so many at most. */
export class MissedFiles {
  readonly #countMax: number;
  readonly #files = new Map<string, PolicyFile>();

  constructor(countMax: number) {
    this.#countMax = countMax;
  }

  add(file: PolicyFile): void {
    this.#files.delete(file.id);
    this.#files.set(file.id, file);
    if (this.#files.size <= this.#countMax) return;
    for (const id of this.#files.keys()) {
      this.#files.delete(id);
      return;
    }
  }

  remove(id: string): void {
    this.#files.delete(id);
  }

  take(): readonly PolicyFile[] {
    const taken = [...this.#files.values()];
    this.#files.clear();
    return taken;
  }
}

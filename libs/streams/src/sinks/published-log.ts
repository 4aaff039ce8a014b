import type { OutputFiles } from './output-files.ts';
import { type PartId, type PartOwner, publishedLogGeneration, publishedLogName, publishedName } from './part-names.ts';
import { type Scratch, writeText } from './write-text.ts';

/**
 * What a subtask has published, kept in the directory, so that readers may move or delete published files: at a restore, a
 * part that is neither pending nor published but in a log was taken by a reader; in no log, it is lost.
 *
 * Crash order: a log names a part before the part is published, and only when its pending file was seen. So there is no
 * moment at which a published part is in no log; and a crash between log and publishing leaves the pending file, which
 * counts more than the log. A log is replaced whole. Each attempt writes its own (the generation is in the name), because
 * a restore with another parallelism gives a part to another subtask, and one that starts early must not drop what a
 * later one still has to read. Older logs go when a round of this attempt is registered: no restore asks for them then.
 */
export class PublishedLog {
  readonly #scratch: Scratch;
  readonly #owner: PartOwner;
  readonly #id: Omit<PartId, 'checkpoint'>;
  readonly #covered = new Set<string>();
  #older: readonly string[] = [];
  /** Published by this attempt, with the newest round whose snapshot still named it. */
  #published: ReadonlyArray<{ readonly name: string; readonly listedIn: number }> = [];

  constructor(scratch: Scratch, owner: PartOwner, id: Omit<PartId, 'checkpoint'>) {
    this.#scratch = scratch;
    this.#owner = owner;
    this.#id = id;
  }

  /** Reads the logs of every attempt and subtask before. */
  async load(names: readonly string[]): Promise<void> {
    const logs = names.filter((name) => publishedLogGeneration(this.#owner, name) !== undefined);
    for (const log of logs) {
      const text = await this.#files.read(log);
      if (text === undefined) continue;
      for (const name of JSON.parse(text) as readonly string[]) this.#covered.add(name);
    }
    this.#older = logs.filter((name) => (publishedLogGeneration(this.#owner, name) as number) < this.#id.generation);
  }

  covers(part: PartId): boolean {
    return this.#covered.has(publishedName(this.#owner, part));
  }

  /** Before `parts` are published because round `checkpoint` is registered. */
  async announce(parts: readonly PartId[], checkpoint: number): Promise<void> {
    this.#published = this.#published.filter(({ listedIn }) => listedIn >= checkpoint);
    const names = [
      ...this.#published.map(({ name }) => name),
      ...parts.map((part) => publishedName(this.#owner, part)),
    ];
    const name = publishedLogName(this.#owner, this.#id);
    await writeText(this.#scratch, { name, text: `${JSON.stringify(names)}\n`, how: 'replace' });
    for (const published of names) this.#covered.add(published);
  }

  /** The part is visible. A restore of a round up to `listedIn` may ask for it. */
  done(part: PartId, listedIn: number): void {
    this.#published = [...this.#published, { name: publishedName(this.#owner, part), listedIn }];
  }

  /** A round of this attempt is registered and published. */
  async dropOlder(): Promise<void> {
    for (const name of this.#older) await this.#files.remove(name);
    this.#older = [];
    this.#covered.clear();
    for (const { name } of this.#published) this.#covered.add(name);
  }

  get #files(): OutputFiles {
    return this.#scratch.files;
  }
}

import type { OutputFile, OutputFiles } from '../sinks/output-files.ts';

/**
 * Output files in memory, for tests of sinks: `content` is what a crash would leave (what was appended and not synced is
 * lost), and `before` may throw to crash in front of any durable step.
 */
export class MemoryOutputFiles implements OutputFiles {
  readonly content = new Map<string, string>();
  /** The steps that were done, in order. */
  readonly steps: string[] = [];
  /** Files with two names: what a crash in the middle of `move` leaves. */
  readonly #linked = new Map<string, string>();
  before: (step: string) => void = () => undefined;

  list(): Promise<readonly string[]> {
    return Promise.resolve([...this.content.keys()]);
  }

  async read(name: string): Promise<string | undefined> {
    return this.content.get(name);
  }

  async create(name: string): Promise<OutputFile> {
    this.#step(`create ${name}`);
    this.content.set(name, '');
    let buffered = '';
    return {
      append: async (bytes) => {
        this.#step(`append ${name}`);
        buffered += new TextDecoder().decode(bytes);
      },
      sync: async () => {
        this.#step(`sync ${name}`);
        this.content.set(name, buffered);
      },
      close: async () => undefined,
    };
  }

  async rename(from: string, to: string): Promise<'done' | 'missing'> {
    this.#step(`rename ${from} ${to}`);
    const text = this.content.get(from);
    if (text === undefined) return 'missing';
    this.content.delete(from);
    this.content.set(to, text);
    return 'done';
  }

  async move(from: string, to: string): Promise<'done' | 'missing' | 'taken'> {
    const text = this.content.get(from);
    if (text === undefined) return 'missing';
    if (this.content.has(to) && this.#linked.get(to) !== from) return 'taken';
    this.#step(`link ${from} ${to}`);
    this.content.set(to, text);
    this.#linked.set(to, from);
    await this.remove(from);
    this.#linked.delete(to);
    return 'done';
  }

  async exists(name: string): Promise<boolean> {
    return this.content.has(name);
  }

  async remove(name: string): Promise<void> {
    this.#step(`remove ${name}`);
    this.content.delete(name);
  }

  #step(step: string): void {
    this.before(step);
    this.steps.push(step);
  }
}

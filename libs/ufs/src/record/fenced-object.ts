import type { Dfs } from '@millrace/dfs';
import { assert, type Clock, isKind, MillraceError, type Random, sleep } from '@millrace/kernel';
import type { TraceContext } from '@millrace/telemetry';
import type { Reaper } from '../reaper.ts';
import { decodeVersion, encodeVersion, fateOf, marksMax, type Version } from './version.ts';
import { VersionLog } from './version-log.ts';

export interface FencedObjectOptions<T> {
  readonly dfs: Dfs;
  /** Path of the directory that holds the versions; nothing else may lie in it. */
  readonly directory: string;
  readonly clock: Clock;
  readonly random: Random;
  /** Invariants of the value: throws when `next` must not follow `current`. Runs before each write. */
  readonly check?: (next: T, current: T | undefined) => void;
  /** Attempts of one update against others before `ufs-conflict`. Default 32. */
  readonly attemptsMax?: number;
  /** The longest pause after the first lost attempt; doubles with each up to 64 times. Default 10. */
  readonly backoffMs?: number;
}

export interface UpdateOptions {
  /** On whose behalf. Refused with `ufs-fenced` once a newer generation has written. */
  readonly generation: number;
  readonly parent?: TraceContext | undefined;
}

export interface ClaimOptions<T> {
  /** Names the claim, so that a repeated call finds its own earlier success; unique to the one who claims. */
  readonly claimant: string;
  /** The value to write for the new generation. Default: the current one (there has to be one). */
  readonly change?: (current: T | undefined, generation: number) => T;
  readonly parent?: TraceContext | undefined;
}

/**
 * One small value that many may try to change and that never loses an acknowledged change: versions numbered from 1,
 * each created by `putIfAbsent`, each with the generation that wrote it. An update takes effect when its number has
 * been created above the boundary of collection; from a {@link claim} on, every update of an older generation is
 * refused. Invariants with their tests: SPEC.md, F1 to F7.
 */
export class FencedObject<T extends { readonly generation: number }> {
  readonly #log: VersionLog;
  readonly #options: FencedObjectOptions<T>;

  constructor(options: FencedObjectOptions<T>) {
    this.#options = options;
    this.#log = new VersionLog(options.dfs, options.directory);
  }

  /** The newest version, as of some moment during the call. */
  async latest(parent?: TraceContext): Promise<Version<T> | undefined> {
    for (let attempt = 1; attempt <= this.#attemptsMax; attempt++) {
      const number = (await this.#log.state()).numbers.at(-1);
      if (number === undefined) return undefined;
      const bytes = await this.#log.read(number, parent);
      if (bytes !== undefined) return decodeVersion<T>(this.#log.path(number), number, bytes);
      // Collected between the two requests: there are newer ones.
    }
    throw this.#conflict('versions are collected faster than they can be read');
  }

  /**
   * Writes `change(current)` as the next version, stamped with `generation`. On a conflict `change` is called again
   * with the newer value, so it has to be pure. A change that returns its argument writes nothing. After a rejection
   * of kind `retry` the change may or may not have taken effect: repeat with a change that looks first.
   */
  update(change: (current: T | undefined) => T, options: UpdateOptions): Promise<Version<T>> {
    const { generation } = options;
    return this.#change(options.parent, (head) => {
      const newest = head?.value.generation ?? 0;
      if (newest > generation) throw this.#fenced(generation, newest);
      const value = change(head?.value);
      if (head !== undefined && value === head.value) return undefined;
      return { value: { ...value, generation }, claimant: newest === generation ? (head?.claimant ?? null) : null };
    });
  }

  /**
   * Starts the next generation and resolves to the version that has it (`value.generation`). A repeated claim of the
   * same claimant gives the same generation; if a newer one has been claimed meanwhile it is simply the next again.
   */
  claim(options: ClaimOptions<T>): Promise<Version<T>> {
    const { claimant, change } = options;
    return this.#change(options.parent, (head) => {
      if (head !== undefined && head.claimant === claimant) return undefined;
      const generation = (head?.value.generation ?? 0) + 1;
      const value = change === undefined ? head?.value : change(head?.value, generation);
      if (value === undefined) {
        throw new MillraceError('ufs-missing', `nothing to claim in ${this.#options.directory}`);
      }
      return { value: { ...value, generation }, claimant };
    });
  }

  /** Removes all but the newest `keep` versions; resolves to how many went. Safe beside any writer and collector. */
  collect(keep: number, reaper: Reaper): Promise<number> {
    return this.#log.collect(keep, reaper);
  }

  /** The loop under update and claim: `decide` gives the next value, or undefined when the head is what is wanted. */
  async #change(
    parent: TraceContext | undefined,
    decide: (head: Version<T> | undefined) => { value: T; claimant: string | null } | undefined,
  ): Promise<Version<T>> {
    for (let attempt = 1; attempt <= this.#attemptsMax; attempt++) {
      const head = await this.latest(parent);
      const next = decide(head);
      if (next === undefined) {
        assert(head !== undefined, 'no change of nothing');
        return head;
      }
      assert(next.value.generation >= (head?.value.generation ?? 0), 'generations do not go back');
      this.#options.check?.(next.value, head?.value);
      const mark = this.#options.random.hex(8);
      const version: Version<T> = {
        number: (head?.number ?? 0) + 1,
        value: next.value,
        claimant: next.claimant,
        marks: [mark, ...(head?.marks ?? [])].slice(0, marksMax),
      };
      if (await this.#commit(version, mark, parent)) return version;
      await this.#pause(attempt);
    }
    throw this.#conflict(`others won ${this.#attemptsMax} times in a row`);
  }

  /** True when `version` has become part of the history, false when another took its number. */
  async #commit(version: Version<T>, mark: string, parent: TraceContext | undefined): Promise<boolean> {
    const bytes = encodeVersion(version);
    for (let attempt = 1; attempt <= this.#attemptsMax; attempt++) {
      const created = await this.#tryCreate(version.number, bytes, parent);
      if (created && (await this.#log.state()).boundary < version.number) return true;
      // Lost, unanswered, or created again after collection: the marks of the newest version tell.
      switch (fateOf({ number: version.number, mark }, await this.latest(parent))) {
        case 'applied':
          return true;
        case 'lost':
          return false;
        case 'unknown':
          throw this.#conflict(`it is unknown whether version ${version.number} took effect`);
        case 'absent':
          await this.#pause(attempt);
      }
    }
    throw this.#conflict(`version ${version.number} could not be written`);
  }

  /** False also when the answer was lost. */
  async #tryCreate(number: number, bytes: Uint8Array, parent: TraceContext | undefined): Promise<boolean> {
    try {
      return await this.#log.create(number, bytes, parent);
    } catch (error) {
      if (isKind(error, 'retry')) return false;
      throw error;
    }
  }

  async #pause(attempt: number): Promise<void> {
    const { clock, random, backoffMs = 10 } = this.#options;
    await sleep(clock, random.float() * backoffMs * Math.min(64, 2 ** (attempt - 1)));
  }

  get #attemptsMax(): number {
    return this.#options.attemptsMax ?? 32;
  }

  #conflict(why: string): MillraceError {
    const { directory } = this.#options;
    return new MillraceError('ufs-conflict', `${directory}: ${why}`, { details: { directory } });
  }

  #fenced(generation: number, newest: number): MillraceError {
    const { directory } = this.#options;
    return new MillraceError('ufs-fenced', `${directory}: generation ${newest} has taken over from ${generation}`, {
      details: { directory, generation, newest },
    });
  }
}

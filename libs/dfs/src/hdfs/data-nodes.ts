import type { Clock } from '@millrace/kernel';

/** How long a data node that did not answer is avoided: longer than a name node takes to notice on a quick setting. */
const avoidedMs = 30_000;
/** Addresses and places remembered at most. */
const nodesMax = 1000;
const placesMax = 4096;

/**
 * What a client knows of data nodes. A name node hands out a dead one until it has missed its heartbeats (ten minutes
 * by default); so nodes that did not answer are named in `excludedatanodes`, which the name node reads as hosts. It
 * may still hand one out (two on one host, or all are excluded): then another node that has answered takes its place,
 * because any data node serves any file, from a peer if need be.
 */
export class DataNodes {
  readonly #clock: Clock;
  /** `host:port` → time until which it is avoided. */
  readonly #bad = new Map<string, number>();
  readonly #good = new Set<string>();
  readonly #places = new Map<string, string>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Value of `excludedatanodes`; undefined when there is none. */
  get excluded(): string | undefined {
    const hosts = [...this.#bad.keys()].filter((node) => this.#isBad(node)).map((node) => node.replace(/:\d+$/, ''));
    return hosts.length === 0 ? undefined : [...new Set(hosts)].join(',');
  }

  /** Where to send what the name node wants sent to `location`. */
  choose(location: string): URL {
    const url = new URL(location);
    if (!this.#isBad(url.host)) return url;
    const other = [...this.#good].find((node) => !this.#isBad(node));
    if (other !== undefined) url.host = other;
    return url;
  }

  answered(node: string): void {
    this.#bad.delete(node);
    this.#good.delete(node);
    this.#good.add(node);
    if (this.#good.size > nodesMax) this.#good.delete(this.#good.values().next().value as string);
  }

  failed(node: string): void {
    this.#good.delete(node);
    this.#bad.delete(node);
    this.#bad.set(node, this.#clock.monotonicMs() + avoidedMs);
    if (this.#bad.size > nodesMax) this.#bad.delete(this.#bad.keys().next().value as string);
  }

  /** Where `path` was read the last time: reading there again spares the name node a request. */
  placeOf(path: string): string | undefined {
    return this.#places.get(path);
  }

  remember(path: string, location: string): void {
    this.#places.delete(path);
    this.#places.set(path, location);
    if (this.#places.size > placesMax) this.#places.delete(this.#places.keys().next().value as string);
  }

  forget(path: string): void {
    this.#places.delete(path);
  }

  #isBad(node: string): boolean {
    return (this.#bad.get(node) ?? Number.NEGATIVE_INFINITY) > this.#clock.monotonicMs();
  }
}

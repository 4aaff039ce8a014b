/**
 * Random jobs: which operators follow which, and what has to come out of them. A plan is drawn from a seed, and holds only
 * operators whose results do not depend on what happens first (see {@link Facts}).
 */
import type { Random } from '@millrace/kernel';
import { type Job, job } from '../api/job.ts';
import type { Stream } from '../api/stream.ts';
import type { Item } from './item.ts';
import { joinKinds } from './join-kinds.ts';
import { pick } from './key.ts';
import { keyedKinds } from './keyed-kinds.ts';
import type { Facts, Kind, Line } from './node.ts';
import { buildSource, draftSource, linesOf, type SourceSpec } from './random-source.ts';
import { statelessKinds } from './stateless-kinds.ts';
import { timerKinds } from './timer-kinds.ts';
import { type Publications, transactionSink } from './transaction-sink.ts';
import { recordsOf } from './walk.ts';
import { windowKinds } from './window-kinds.ts';

const kinds: readonly Kind[] = [...statelessKinds, ...keyedKinds, ...timerKinds, ...windowKinds, ...joinKinds];
/** More would only take longer. */
const linesMax = 600;

/** A stream of the plan, and what the reference says of it. */
interface Planned {
  readonly name: string;
  readonly facts: Facts;
  readonly lines: readonly Line[];
}

interface Step {
  readonly kind: Kind;
  readonly spec: unknown;
  /** Numbers of streams. */
  readonly inputs: readonly number[];
}

export interface PlanLimits {
  /** Most records of a source. */
  readonly records: number;
  readonly operators: number;
}

export class Plan {
  /** One subtask throughout: then the places of watermarks among the records are known. */
  readonly single: boolean;
  readonly sources: readonly SourceSpec[];
  readonly #steps: Step[] = [];
  readonly #streams: Planned[] = [];
  readonly #sinks = new Set<number>();

  constructor(random: Random, { records, operators }: PlanLimits) {
    this.single = random.below(3) === 0;
    this.sources = Array.from({ length: 1 + random.below(3) }, (_, source) =>
      draftSource(random, source, this.single && random.below(3) > 0, records),
    );
    for (const spec of this.sources) this.#addSource(spec);
    const wanted = 1 + random.below(operators);
    for (let tries = 0; this.#steps.length < wanted && tries < wanted * 10; tries++) this.#addStep(random);
    const used = new Set(this.#steps.flatMap(({ inputs }) => inputs));
    for (const [number] of this.#streams.entries()) {
      if (!used.has(number) || random.below(4) === 0) this.#sinks.add(number);
    }
  }

  /** Of the streams that have a sink. */
  get ends(): readonly Planned[] {
    return [...this.#sinks].map((number) => this.#streams[number] as Planned);
  }

  /** The kinds of operators in it. */
  get kinds(): readonly string[] {
    return this.#steps.map(({ kind }) => kind.name);
  }

  get records(): number {
    return this.#streams.reduce((sum, { lines }) => sum + lines.length, 0);
  }

  /** What a person needs to see of a case that fails. */
  describe(): string {
    const sources = this.sources.map((spec, i) => `  ${this.#streams[i]?.name} ${JSON.stringify(spec)}`);
    const steps = this.#steps.map(({ kind, spec, inputs }, i) => {
      const from = inputs.map((number) => this.#streams[number]?.name).join(', ');
      return `  n${i} ${kind.name}(${from}) ${JSON.stringify(spec)}`;
    });
    return [...sources, ...steps, `  sinks: ${this.ends.map(({ name }) => name).join(', ')}`].join('\n');
  }

  /** `publications` by the name of the stream. */
  job(publications: ReadonlyMap<string, Publications>): Job {
    return job('random', (flow) => {
      const streams: Stream<Item>[] = this.sources.map((spec, i) => buildSource(flow, spec, `s${i}`));
      for (const [i, { kind, spec, inputs }] of this.#steps.entries()) {
        const from = inputs.map((number) => streams[number] as Stream<Item>);
        streams.push(...kind.build(spec, from, `n${i}`));
      }
      for (const number of this.#sinks) {
        const { name, facts } = this.#streams[number] as Planned;
        const sink = transactionSink(publications.get(name) as Publications, facts.time === 'safe');
        streams[number]?.to(sink, { uid: `sink-${name}` });
      }
    });
  }

  #addSource(spec: SourceSpec): void {
    const time = spec.exact ? 'exact' : 'safe';
    const facts: Facts = { order: ['lane'], time, sources: [spec.source], unique: true };
    this.#streams.push({ name: `s${spec.source}`, facts, lines: linesOf(spec) });
  }

  #addStep(random: Random): void {
    const kind = pick(random, kinds);
    const inputs = Array.from({ length: kind.inputs }, () => this.#pickStream(random));
    const streams = inputs.map((number) => this.#streams[number] as Planned);
    if (streams.some(({ facts }) => facts.changes)) return;
    const draft = kind.draft(
      random,
      streams.map(({ facts }) => facts),
    );
    if (draft === undefined) return;
    const { spec, outputs } = draft;
    const computed = kind.compute(
      spec,
      streams.map(({ lines }) => lines),
    );
    if (computed.some((lines) => lines.length > linesMax)) return;
    const name = `n${this.#steps.length}`;
    this.#steps.push({ kind, spec, inputs });
    for (const [i, facts] of outputs.entries()) {
      const lines =
        facts.time === 'exact' ? (computed[i] as readonly Line[]) : recordsOf(computed[i] as readonly Line[]);
      const records = recordsOf(lines);
      const unique = new Set(records.map(({ item }) => item.id)).size === records.length;
      this.#streams.push({ name: i === 0 ? name : `${name}.side`, facts: { ...facts, unique }, lines });
    }
  }

  /** Mostly one of the last: jobs that are deep rather than broad. */
  #pickStream(random: Random): number {
    const last = this.#streams.length - 1;
    return random.below(3) === 0 ? random.below(last + 1) : last - random.below(Math.min(3, last + 1));
  }
}

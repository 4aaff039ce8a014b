import type { Codec } from '@millrace/state';
import type { GraphBuilder } from '../graph/graph-builder.ts';
import { SourceHost } from '../operators/source-host.ts';
import type { FromOptions } from './from-options.ts';
import type { Source } from './source.ts';
import { Stream } from './stream.ts';

/** Where a job's streams begin. */
export class Flow {
  readonly #builder: GraphBuilder;

  constructor(builder: GraphBuilder) {
    this.#builder = builder;
  }

  /** A stream of everything that the source reads, from all its splits. */
  from<T>(source: Source<T>, options: FromOptions<T> = {}): Stream<T> {
    const node = this.#builder.add({
      kind: source.kind,
      uid: options.uid,
      stateful: true,
      role: 'source',
      create: () => new SourceHost(source, options),
    });
    return new Stream(this.#builder, [
      { node, side: undefined, codec: source.codec as Codec<never>, spread: 'forward' },
    ]);
  }
}

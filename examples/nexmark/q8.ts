/*
 * Nexmark 8, monitor new users: who has come to the site and opened an auction in the same ten seconds; each once.
 */
import { int64, job, json, personCodec, struct, tumbling } from '@millrace/streams';
import { auctions, people, rowFiles, siteEvents, siteOptions } from './site.ts';

const every = tumbling({ seconds: 10 });

export default job('nexmark-q8', { options: siteOptions('nexmark-q8') }, (flow, o) => {
  const events = siteEvents(flow, o);
  const sellers = auctions(events)
    .keyBy((auction) => auction.seller)
    .window(every, { uid: 'sellers' })
    .aggregate({
      accumulator: int64,
      output: struct({ id: int64, auctions: int64 }),
      create: () => 0,
      add: (count) => count + 1,
      result: (count, id) => ({ id, auctions: count }),
    });
  people(events)
    .keyBy((person) => person.id)
    .windowJoin(
      sellers.keyBy((seller) => seller.id),
      every,
      {
        uid: 'new-sellers',
        left: personCodec,
        right: struct({ id: int64, auctions: int64 }),
        output: json<{ person: number; name: string; startMs: number }>(),
        pair: ({ name }, _seller, person, { startMs }) => ({ person, name, startMs }),
      },
    )
    .to(rowFiles(o), { uid: 'files' });
});

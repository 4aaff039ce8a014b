/*
 * Nexmark 3, local item suggestion: who in Oregon, Idaho or California sells something of category 10. A join of people
 * with the auctions that they have opened, whichever comes first; a person matches for ever, here: for a day.
 */
import { auctionCodec, job, json, personCodec } from '@millrace/streams';
import { auctions, people, rowFiles, siteEvents, siteOptions } from './site.ts';

const states = new Set(['OR', 'ID', 'CA']);

export default job('nexmark-q3', { options: siteOptions('nexmark-q3') }, (flow, o) => {
  const events = siteEvents(flow, o);
  people(events)
    .filter((person) => states.has(person.state))
    .keyBy((person) => person.id)
    .join(
      auctions(events)
        .filter((auction) => auction.category === 10)
        .keyBy((auction) => auction.seller),
      {
        uid: 'local-items',
        left: { codec: personCodec },
        right: { codec: auctionCodec, id: (auction) => `${auction.id}` },
        ttl: { days: 1 },
        output: json<{ name: string; city: string; state: string; auction: number }>(),
        pair: ({ name, city, state }, auction) => ({ name, city, state, auction: auction.id }),
      },
    )
    .to(rowFiles(o), { uid: 'files' });
});

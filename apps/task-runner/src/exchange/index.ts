export type { PullStream } from './downstream-feed.ts';
export { ExchangeBridge, type ExchangeOptions, type ExchangeStats } from './exchange-bridge.ts';
export { type ExchangeLayout, type ExchangePeer, exchangeLayout } from './layout.ts';
// `PortTransport` is imported by its own path: a slot's thread needs no gRPC, which takes long to load.

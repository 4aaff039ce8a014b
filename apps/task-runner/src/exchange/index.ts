export type { PullStream } from './downstream-feed.ts';
export { ExchangeBridge, type ExchangeOptions, type ExchangeStats } from './exchange-bridge.ts';
export { type ExchangeLayout, type ExchangePeer, exchangeLayout } from './layout.ts';
export { PortTransport } from './port-transport.ts';

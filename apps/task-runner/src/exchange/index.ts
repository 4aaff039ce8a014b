export type { PullStream } from './downstream-feed.ts';
export { ExchangeBridge } from './exchange-bridge.ts';
export { exchangeLayout } from './layout.ts';
// `PortTransport` is imported by its own path: a slot's thread needs no gRPC, which takes long to load.

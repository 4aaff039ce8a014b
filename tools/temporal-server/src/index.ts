export { type DevServer, type DevServerOptions, searchAttributes, startDevServer } from './dev-server.ts';
export { freePort, requireFreePort } from './ports.ts';
export { type ResolveOptions, resolveTemporal, toolCacheDir } from './resolve.ts';
export type { Obtained, Source } from './sources.ts';

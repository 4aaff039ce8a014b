/**
 * Who may import whom (DESIGN, "Layers and rooms"). One way down; only composition roots (`main.ts` and the files
 * they alone import, named `compose.ts`) choose implementations.
 */
export const allowed: Readonly<Record<string, readonly string[]>> = {
  kernel: [],
  telemetry: ['kernel'],
  proto: ['kernel'],
  aec: ['kernel'],
  dfs: ['kernel', 'telemetry'],
  cache: ['kernel', 'telemetry'],
  ufs: ['kernel', 'telemetry', 'dfs', 'cache'],
  lsm: ['kernel', 'telemetry', 'ufs', 'cache'],
  state: ['kernel', 'telemetry', 'proto', 'cache'],
  'state-lsm': ['kernel', 'telemetry', 'state', 'lsm', 'ufs'],
  'kv-shard': ['kernel', 'telemetry', 'state'],
  'kv-cql': ['kernel', 'telemetry', 'state'],
  'state-remote': ['kernel', 'telemetry', 'proto', 'state'],
  inspect: ['kernel', 'telemetry', 'proto', 'state', 'state-lsm', 'lsm', 'ufs', 'dfs'],
  streams: ['kernel', 'telemetry', 'aec', 'state'],
  kafka: ['kernel', 'streams'],
  client: ['kernel', 'telemetry', 'proto'],
  temporal: ['kernel', 'telemetry'],
  'control-plane': ['kernel', 'telemetry', 'proto', 'client', 'ufs', 'dfs'],
  'task-runner': ['kernel', 'telemetry', 'proto', 'temporal', 'aec', 'state', 'streams', 'ufs', 'dfs'],
  'state-service': ['kernel', 'telemetry', 'proto', 'temporal', 'state', 'state-remote', 'ufs', 'dfs'],
  'temporal-server': ['kernel'],
  cli: ['kernel', 'telemetry', 'proto', 'client', 'inspect', 'temporal-server'],
  layers: ['kernel'],
  ci: [],
  bench: [
    'kernel',
    'cache',
    'proto',
    'client',
    'cli',
    'examples',
    'streams',
    'state',
    'state-lsm',
    'state-remote',
    'ufs',
    'dfs',
    'lsm',
    'aec',
    'telemetry',
  ],
  examples: ['kernel', 'streams', 'kafka'],
  'backend-redis': ['kernel', 'state'],
  'backend-template': ['kernel', 'telemetry', 'state'],
  e2e: [
    'kernel',
    'telemetry',
    'proto',
    'client',
    'cli',
    'temporal-server',
    'examples',
    'streams',
    'kafka',
    'state',
    'state-lsm',
    'state-service',
    'kv-cql',
    'ufs',
    'dfs',
    'lsm',
  ],
};

/** What composition roots may import beyond their project's row. */
export const compositionRoots: Readonly<Record<string, readonly string[]>> = {
  'control-plane': ['temporal-server'],
  'task-runner': ['lsm', 'cache', 'state-lsm', 'state-remote', 'temporal-server'],
  'state-service': ['lsm', 'cache', 'state-lsm', 'kv-shard'],
};

/** File names of composition roots. */
export const rootFiles: readonly string[] = ['main.ts', 'compose.ts', 'slot-thread.ts'];

/** External packages that only one room may import: everyone else goes through that room. */
export const guarded: Readonly<Record<string, readonly string[]>> = {
  '@grpc/grpc-js': ['proto', 'task-runner', 'control-plane', 'state-service', 'state-remote', 'e2e'],
  '@temporalio/': ['control-plane', 'task-runner', 'state-service', 'temporal', 'client', 'temporal-server', 'e2e'],
  '@opentelemetry/': ['telemetry', 'proto', 'control-plane', 'task-runner'],
  '@platformatic/kafka': ['kafka', 'e2e'],
  '@aws-sdk/': ['dfs'],
  'rocksdb-native': ['kv-shard', 'bench'],
  'cassandra-driver': ['kv-cql', 'e2e'],
  '@redis/': ['backend-redis'],
};

export { type ClusterCheckpoint, LocalCluster, type LocalClusterOptions, testSlotSettings } from './local-cluster.ts';
export { MemoryNetwork, type MemoryNetworkOptions } from './memory-network.ts';

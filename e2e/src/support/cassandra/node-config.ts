/** What one node of a test ring is told. All nodes of a ring have the same ports, each on an address of its own. */
export interface NodeConfig {
  /** From 1. */
  readonly number: number;
  readonly address: string;
  readonly seed: string;
  readonly directory: string;
  readonly nativePort: number;
  readonly storagePort: number;
}

/** Tokens are fixed, so that all nodes of a fresh ring may start at once. */
function tokenOf(number: number): string {
  return String(BigInt(number - 1) * 6_148_914_691_236_517_204n - 9_223_372_036_854_775_808n);
}

/** `cassandra.yaml` for a small node on loopback; limits of batches are those of a default installation. */
export function cassandraYaml(config: NodeConfig): string {
  const { number, address, seed, directory, nativePort, storagePort } = config;
  return `cluster_name: millrace-test
num_tokens: 1
initial_token: ${tokenOf(number)}
auto_bootstrap: false
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
data_file_directories: [${directory}/data]
commitlog_directory: ${directory}/commitlog
saved_caches_directory: ${directory}/saved_caches
hints_directory: ${directory}/hints
cdc_raw_directory: ${directory}/cdc_raw
commitlog_sync: periodic
commitlog_sync_period: 1000ms
commitlog_segment_size: 8MiB
commitlog_total_space: 128MiB
disk_failure_policy: stop
commit_failure_policy: stop
disk_access_mode: standard
endpoint_snitch: SimpleSnitch
seed_provider:
  - class_name: org.apache.cassandra.locator.SimpleSeedProvider
    parameters: [{seeds: "${seed}:${storagePort}"}]
listen_address: ${address}
rpc_address: ${address}
storage_port: ${storagePort}
native_transport_port: ${nativePort}
start_native_transport: true
auto_snapshot: false
incremental_backups: false
memtable:
  configurations:
    default: {class_name: TrieMemtable}
memtable_heap_space: 64MiB
memtable_offheap_space: 64MiB
memtable_allocation_type: offheap_objects
sstable: {selected_format: bti}
storage_compatibility_mode: NONE
file_cache_size: 64MiB
networking_cache_size: 32MiB
concurrent_reads: 16
concurrent_writes: 16
concurrent_compactors: 1
key_cache_size: 8MiB
counter_cache_size: 0MiB
unlogged_batch_across_partitions_warn_threshold: 1000
`;
}

export function logbackXml(directory: string): string {
  return `<configuration><appender name="F" class="ch.qos.logback.core.FileAppender"><file>${directory}/system.log</file><append>false</append><encoder><pattern>%-5level %d{HH:mm:ss.SSS} %logger{20} - %msg%n</pattern></encoder></appender>
<root level="INFO"><appender-ref ref="F"/></root></configuration>
`;
}

const exported = [
  'java.base/jdk.internal.misc',
  'java.base/jdk.internal.ref',
  'java.base/java.lang.ref',
  'java.base/sun.nio.ch',
  'java.management.rmi/com.sun.jmx.remote.internal.rmi',
  'java.rmi/sun.rmi.registry',
  'java.rmi/sun.rmi.server',
  'java.sql/java.sql',
  'jdk.attach/sun.tools.attach',
  'jdk.compiler/com.sun.tools.javac.file',
  'jdk.unsupported/sun.misc',
];
const opened = [
  'java.base/java.io',
  'java.base/java.lang',
  'java.base/java.lang.module',
  'java.base/java.lang.reflect',
  'java.base/java.nio',
  'java.base/java.util',
  'java.base/jdk.internal.loader',
  'java.base/jdk.internal.math',
  'java.base/jdk.internal.module',
  'java.base/jdk.internal.ref',
  'java.base/jdk.internal.reflect',
  'java.base/jdk.internal.util.jar',
  'java.base/sun.nio.ch',
  'jdk.compiler/com.sun.tools.javac',
  'jdk.management/com.sun.management.internal',
];

/** Arguments of `java` for a node that takes some 500 MB. */
export function javaArguments(directory: string, jars: string): string[] {
  return [
    '-Xms128m',
    '-Xmx512m',
    '-Xss512k',
    '-Xshare:auto',
    '-XX:+UseSerialGC',
    '-XX:TieredStopAtLevel=1',
    '-XX:MaxDirectMemorySize=256m',
    '-XX:+ExitOnOutOfMemoryError',
    '-Djdk.attach.allowAttachSelf=true',
    ...exported.flatMap((name) => ['--add-exports', `${name}=ALL-UNNAMED`]),
    ...opened.flatMap((name) => ['--add-opens', `${name}=ALL-UNNAMED`]),
    '-Dio.netty.tryReflectionSetAccessible=true',
    '-Dio.netty.allocator.maxOrder=11',
    `-Dcassandra.config=file://${directory}/cassandra.yaml`,
    `-Dlogback.configurationFile=file://${directory}/logback.xml`,
    `-Dcassandra.storagedir=${directory}`,
    `-Dcassandra.logdir=${directory}`,
    `-Dcassandra.triggers_dir=${directory}`,
    `-Djava.io.tmpdir=${directory}`,
    '-Dcassandra-foreground=yes',
    '-Dcassandra.ring_delay_ms=2000',
    '-Dcassandra.skip_wait_for_gossip_to_settle=0',
    '-Dcassandra.consistent.rangemovement=false',
    '-Dcassandra.superuser_setup_delay_ms=0',
    '-cp',
    `${jars}/*`,
    'org.apache.cassandra.service.CassandraDaemon',
  ];
}

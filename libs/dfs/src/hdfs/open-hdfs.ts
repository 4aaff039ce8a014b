import type { WireOptions } from '../remote/wire.ts';
import type { UriSource } from '../uri-parameters.ts';
import { HdfsDfs } from './hdfs-dfs.ts';
import { type HdfsSettings, hdfsSettings } from './hdfs-uri.ts';

/** Opens what an `hdfs:` URI names. Without `user=`, the user is the one that all Hadoop clients take: HADOOP_USER_NAME. */
export async function openHdfs(
  source: UriSource,
  options: WireOptions,
): Promise<{ readonly driver: HdfsDfs; readonly settings: HdfsSettings }> {
  const settings = hdfsSettings(source, process.env.HADOOP_USER_NAME);
  return { driver: await HdfsDfs.open(source.uri, settings, options), settings };
}

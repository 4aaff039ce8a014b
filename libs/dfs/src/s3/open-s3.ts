import type { WireOptions } from '../remote/wire.ts';
import type { UriSource } from '../uri-parameters.ts';
import { S3Dfs } from './s3-dfs.ts';
import { type S3Settings, s3Settings } from './s3-uri.ts';

/** Opens what an `s3:` URI names. Loaded when one is given: it brings the AWS SDK with it. */
export async function openS3(
  source: UriSource,
  options: WireOptions,
): Promise<{ readonly driver: S3Dfs; readonly settings: S3Settings }> {
  const settings = s3Settings(source);
  return { driver: await S3Dfs.open(source.uri, settings, options), settings };
}

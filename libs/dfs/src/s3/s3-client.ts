import { S3Client, type S3ClientConfig } from '@aws-sdk/client-s3';
import type { S3Settings } from './s3-uri.ts';

/** A client without retries (who calls it repeats), with connections that are kept, and credentials as the SDK finds them. */
export function newS3Client(settings: S3Settings): S3Client {
  const agent = { keepAlive: true, maxSockets: settings.connections };
  const config: S3ClientConfig = {
    maxAttempts: 1,
    forcePathStyle: settings.pathStyle,
    requestHandler: {
      connectionTimeout: settings.connectTimeoutMs,
      // Requests that wait for a connection are no fault: `connections` says how many go at a time.
      socketAcquisitionWarningTimeout: 2_147_483_647,
      httpAgent: agent,
      httpsAgent: agent,
    },
    ...(settings.region === undefined ? {} : { region: settings.region }),
  };
  if (settings.endpoint === undefined) return new S3Client(config);
  // Services other than AWS do not all know the newer checksums; what Millrace stores carries its own.
  return new S3Client({
    ...config,
    endpoint: settings.endpoint,
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
  });
}

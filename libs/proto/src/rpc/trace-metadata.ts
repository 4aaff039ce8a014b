import { Metadata } from '@grpc/grpc-js';

const key = 'traceparent';

/** Metadata that names the caller's span (W3C trace context). */
export function metadataOf(parent: string | undefined): Metadata {
  const metadata = new Metadata();
  if (parent !== undefined) metadata.set(key, parent);
  return metadata;
}

export function parentOf(metadata: Metadata): string | undefined {
  const value = metadata.get(key)[0];
  return value === undefined ? undefined : value.toString();
}

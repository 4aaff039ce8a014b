import { createHash, timingSafeEqual } from 'node:crypto';
import { Metadata } from '@grpc/grpc-js';

const key = 'traceparent';
const tokenKey = 'authorization';

/** Metadata that names the caller's span (W3C trace context), and shows its token. */
export function metadataOf(parent: string | undefined, token?: string): Metadata {
  const metadata = new Metadata();
  if (parent !== undefined) metadata.set(key, parent);
  if (token !== undefined) metadata.set(tokenKey, `Bearer ${token}`);
  return metadata;
}

/** Whether the call shows this token; takes as long for any wrong one. */
export function showsToken(metadata: Metadata, token: string): boolean {
  const shown = Buffer.from(String(metadata.get(tokenKey)[0] ?? ''));
  const digest = (bytes: Uint8Array): Uint8Array => createHash('sha256').update(bytes).digest();
  return timingSafeEqual(digest(shown), digest(Buffer.from(`Bearer ${token}`)));
}

export function parentOf(metadata: Metadata): string | undefined {
  const value = metadata.get(key)[0];
  return value === undefined ? undefined : value.toString();
}

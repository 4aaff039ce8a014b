/**
 * The cache of a process and its users on other threads, over a `BroadcastChannel`: a name is all that a thread has to be given,
 * however deep it was started from another.
 */
import { BroadcastChannel } from 'node:worker_threads';
import type { Clock, Random } from '@millrace/kernel';
import type { CacheLink, CacheNotice, SpaceRequest } from './cache-link.ts';
import type { DiskCache } from './disk-cache.ts';

type Message =
  | { readonly kind: 'notice'; readonly notice: CacheNotice }
  | { readonly kind: 'request'; readonly user: string; readonly id: number; readonly request: SpaceRequest }
  | { readonly kind: 'answer'; readonly user: string; readonly id: number; readonly granted: boolean };

/** A cache that does not answer is busy or gone: the copy is not written. */
const answerTimeoutMs = 1000;

/** Answers users; the result ends it. */
export function serveCache(cache: DiskCache, channelName: string): () => void {
  const channel = open(channelName, (message) => {
    if (message.kind === 'notice') cache.notify(message.notice);
    if (message.kind !== 'request') return;
    const { user, id, request } = message;
    void cache.request(request).then(
      (granted) => post(channel, { kind: 'answer', user, id, granted }),
      () => post(channel, { kind: 'answer', user, id, granted: false }),
    );
  });
  return () => channel.close();
}

export interface CacheChannelOptions {
  readonly clock: Clock;
  readonly random: Random;
}

/** Reaches the cache from another thread. */
export function cacheChannel(channelName: string, { clock, random }: CacheChannelOptions): CacheLink {
  const user = random.hex(8);
  const waiting = new Map<number, (granted: boolean) => void>();
  let nextId = 0;
  const channel = open(channelName, (message) => {
    if (message.kind === 'answer' && message.user === user) waiting.get(message.id)?.(message.granted);
  });
  return {
    notify: (notice) => post(channel, { kind: 'notice', notice }),
    request: (request) => {
      const id = nextId++;
      const answer = Promise.withResolvers<boolean>();
      const timer = clock.schedule(answerTimeoutMs, () => answer.resolve(false));
      waiting.set(id, answer.resolve);
      post(channel, { kind: 'request', user, id, request });
      return answer.promise.finally(() => {
        timer.cancel();
        waiting.delete(id);
      });
    },
    close: () => channel.close(),
  };
}

function open(name: string, receive: (message: Message) => void): BroadcastChannel {
  const channel = new BroadcastChannel(name);
  channel.onmessage = (event) => receive((event as { data: Message }).data);
  // It keeps no thread alive.
  channel.unref();
  return channel;
}

/** A channel that is closed has nobody to tell. */
function post(channel: BroadcastChannel, message: Message): void {
  try {
    channel.postMessage(message);
  } catch {
    // Closed meanwhile: the lease ends what was asked for.
  }
}

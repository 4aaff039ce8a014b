import { MillraceError } from '@millrace/kernel';
import type { Dfs, DfsEntry, DfsWriter } from '../dfs.ts';
import { checkPath, checkPrefix } from '../path.ts';
import { checkRange, notFound } from '../ranges.ts';
import { PartWriter } from '../remote/part-writer.ts';
import { Wire, type WireOptions } from '../remote/wire.ts';
import { byCodeUnits } from './key-order.ts';
import { newS3Client } from './s3-client.ts';
import { S3Requests } from './s3-requests.ts';
import { S3Upload } from './s3-upload.ts';
import type { S3Settings } from './s3-uri.ts';

/** Millrace's own objects, which no listing shows. */
const ownDirectory = '.millrace-tmp/';

/**
 * Objects of a bucket of S3, or of any service that speaks its language, as a Dfs.
 *
 * What the store gives, and the port needs: an object is replaced whole and at once (`put`; `createWriter` by
 * CompleteMultipartUpload); **a conditional put, `If-None-Match: *`, has one winner**; reads and listings show what
 * was written before them (AWS says so since 2020). A service that takes a conditional put and ignores the condition
 * would let two jobs overwrite each other, so `open` tries it out and refuses such a service.
 *
 * Each method is one request, but for listings (one per thousand objects) and for files larger than a part
 * (`partBytes`): those are uploaded in parts. What a killed process leaves of such an upload is no object; let a
 * lifecycle rule of the bucket (AbortIncompleteMultipartUpload) end it.
 *
 * Nothing is repeated here but a writer's parts; {@link RetryingDfs} repeats the rest.
 */
export class S3Dfs implements Dfs {
  readonly uri: string;
  readonly wire: Wire;
  readonly #settings: S3Settings;
  readonly #requests: S3Requests;
  readonly #end: () => void;

  private constructor(uri: string, settings: S3Settings, options: WireOptions) {
    const client = newS3Client(settings);
    this.uri = uri;
    this.wire = new Wire(settings, options);
    this.#settings = settings;
    this.#requests = new S3Requests(client, settings.bucket, this.wire);
    this.#end = () => client.destroy();
  }

  /** Finds out whether the bucket can be used: one request, the very first time two. */
  static async open(uri: string, settings: S3Settings, options: WireOptions): Promise<S3Dfs> {
    const dfs = new S3Dfs(uri, settings, options);
    try {
      await dfs.wire.retried(`open ${uri}`, () => dfs.#tryConditionalPut());
      return dfs;
    } catch (error) {
      await dfs.close();
      throw error;
    }
  }

  async put(path: string, bytes: Uint8Array): Promise<void> {
    await this.#requests.put(this.#key(path), bytes);
  }

  async putIfAbsent(path: string, bytes: Uint8Array): Promise<boolean> {
    return await this.#requests.putIfAbsent(this.#key(path), bytes);
  }

  async read(path: string, offset: number, length: number): Promise<Uint8Array> {
    checkRange(path, offset, length);
    const key = this.#key(path);
    // HTTP has no empty range.
    const bytes =
      length > 0
        ? await this.#requests.get(key, { offset, length })
        : (await this.#requests.head(key)) && new Uint8Array(0);
    if (bytes === undefined) throw notFound(this.uri, path);
    return bytes;
  }

  async readAll(path: string): Promise<Uint8Array | undefined> {
    return await this.#requests.get(this.#key(path));
  }

  async stat(path: string): Promise<DfsEntry | undefined> {
    const found = await this.#requests.head(this.#key(path));
    return found && { path, sizeBytes: found.sizeBytes, modifiedMs: found.modifiedMs };
  }

  async *list(prefix: string): AsyncGenerator<DfsEntry> {
    checkPrefix(prefix);
    yield* byCodeUnits(this.#listed(prefix));
  }

  async remove(path: string): Promise<void> {
    await this.#requests.remove(this.#key(path));
  }

  async createWriter(path: string): Promise<DfsWriter> {
    const { partBytes } = this.#settings;
    return new PartWriter(new S3Upload(this.#requests, this.wire, { key: this.#key(path), partBytes }));
  }

  close(): Promise<void> {
    this.#end();
    return Promise.resolve();
  }

  async *#listed(prefix: string): AsyncGenerator<DfsEntry> {
    const { keyPrefix } = this.#settings;
    let token: string | undefined;
    do {
      const page = await this.#requests.page(keyPrefix + prefix, token);
      for (const { key, sizeBytes, modifiedMs } of page.objects) {
        const path = key.slice(keyPrefix.length);
        // A key that ends with a slash is what some tools make to show a directory.
        if (!path.startsWith(ownDirectory) && !path.endsWith('/') && path !== '') yield { path, sizeBytes, modifiedMs };
      }
      token = page.next;
    } while (token !== undefined);
  }

  #key(path: string): string {
    checkPath(path);
    if (`${path}/`.startsWith(ownDirectory)) {
      throw new MillraceError('dfs-bad-path', `path ${path} is not allowed: ${ownDirectory} is for Millrace’s own use`);
    }
    return this.#settings.keyPrefix + path;
  }

  async #tryConditionalPut(): Promise<void> {
    const key = `${this.#settings.keyPrefix}${ownDirectory}conditional-put`;
    const bytes = new TextEncoder().encode(
      'Here Millrace tried whether a conditional put is refused the second time.\n',
    );
    if (!(await this.#requests.putIfAbsent(key, bytes))) return;
    if (!(await this.#requests.putIfAbsent(key, bytes))) return;
    throw new MillraceError(
      'dfs-unsupported',
      `${this.uri}: the service takes a conditional put (If-None-Match: *) of an object that exists; use one that refuses it, such as AWS S3 or a newer version`,
      { details: { path: key } },
    );
  }
}

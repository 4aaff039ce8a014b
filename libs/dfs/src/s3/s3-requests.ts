import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  type S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import { MillraceError } from '@millrace/kernel';
import type { DfsEntry } from '../dfs.ts';
import type { Wire } from '../remote/wire.ts';
import { answerOf, s3Error } from './s3-errors.ts';

interface Call {
  readonly operation: string;
  readonly key: string;
  readonly sizeBytes?: number;
}

/** What a listing's page says of one object. */
export interface S3Listed {
  readonly key: string;
  readonly sizeBytes: number;
  readonly modifiedMs: number;
}

const isAbsent = (error: unknown): boolean => {
  const { name, status } = answerOf(error);
  // A bucket that is missing answers 404 too, and that is no absence.
  return status === 404 && name !== 'NoSuchBucket';
};

/** The requests of S3 that the driver makes, one method each: sent once, failures as MillraceErrors. */
export class S3Requests {
  readonly #client: S3Client;
  readonly #bucket: string;
  readonly #wire: Wire;

  constructor(client: S3Client, bucket: string, wire: Wire) {
    this.#client = client;
    this.#bucket = bucket;
    this.#wire = wire;
  }

  async put(key: string, bytes: Uint8Array): Promise<void> {
    await this.#send({ operation: 'put', key, sizeBytes: bytes.length }, (signal) =>
      this.#client.send(new PutObjectCommand({ ...this.#at(key), Body: bytes }), { abortSignal: signal }),
    );
  }

  /** False when the object exists. */
  async putIfAbsent(key: string, bytes: Uint8Array): Promise<boolean> {
    return await this.#send({ operation: 'put', key, sizeBytes: bytes.length }, async (signal) => {
      const command = new PutObjectCommand({ ...this.#at(key), Body: bytes, IfNoneMatch: '*' });
      try {
        await this.#client.send(command, { abortSignal: signal });
        return true;
      } catch (error) {
        if (answerOf(error).status === 412) return false;
        throw error;
      }
    });
  }

  /** Undefined when there is no such object; empty behind its end. Without a range, the whole. */
  async get(
    key: string,
    range?: { readonly offset: number; readonly length: number },
  ): Promise<Uint8Array | undefined> {
    const bytes = await this.#send({ operation: 'get', key, sizeBytes: range?.length ?? 0 }, async (signal) => {
      const Range = range && `bytes=${range.offset}-${range.offset + range.length - 1}`;
      try {
        const command = new GetObjectCommand({ ...this.#at(key), Range });
        const answer = await this.#client.send(command, { abortSignal: signal });
        return await bodyOf(answer.Body, answer.ContentLength);
      } catch (error) {
        if (answerOf(error).status === 416) return new Uint8Array(0);
        if (isAbsent(error)) return undefined;
        throw error;
      }
    });
    if (range === undefined && bytes !== undefined) this.#wire.received(bytes.length);
    return bytes;
  }

  /** Undefined when there is no such object. */
  async head(
    key: string,
  ): Promise<(Omit<DfsEntry, 'path'> & { readonly metadata: Readonly<Record<string, string>> }) | undefined> {
    return await this.#send({ operation: 'head', key }, async (signal) => {
      try {
        const answer = await this.#client.send(new HeadObjectCommand(this.#at(key)), { abortSignal: signal });
        const { ContentLength = 0, LastModified, Metadata = {} } = answer;
        return { sizeBytes: ContentLength, modifiedMs: secondsOf(LastModified), metadata: Metadata };
      } catch (error) {
        if (isAbsent(error)) return undefined;
        throw error;
      }
    });
  }

  /** Idempotent. */
  async remove(key: string): Promise<void> {
    await this.#send({ operation: 'delete', key }, async (signal) => {
      try {
        await this.#client.send(new DeleteObjectCommand(this.#at(key)), { abortSignal: signal });
      } catch (error) {
        if (!isAbsent(error)) throw error;
      }
    });
  }

  /** At most a thousand objects in order of UTF-8 bytes, and where the next page begins. */
  async page(
    prefix: string,
    token: string | undefined,
  ): Promise<{ readonly objects: S3Listed[]; readonly next?: string }> {
    return await this.#send({ operation: 'list', key: prefix }, async (signal) => {
      const command = new ListObjectsV2Command({
        Bucket: this.#bucket,
        Prefix: prefix,
        ContinuationToken: token,
        EncodingType: 'url',
      });
      const answer = await this.#client.send(command, { abortSignal: signal });
      const decode = answer.EncodingType === 'url' ? urlDecoded : (key: string) => key;
      const objects = (answer.Contents ?? []).map(({ Key = '', Size = 0, LastModified }) => ({
        key: decode(Key),
        sizeBytes: Size,
        modifiedMs: secondsOf(LastModified),
      }));
      const next = answer.IsTruncated === true ? answer.NextContinuationToken : undefined;
      return next === undefined ? { objects } : { objects, next };
    });
  }

  /** Begins an upload in parts; `mark` becomes metadata of the object. */
  async createUpload(key: string, mark: string): Promise<string> {
    const answer = await this.#send({ operation: 'create-upload', key }, (signal) =>
      this.#client.send(new CreateMultipartUploadCommand({ ...this.#at(key), Metadata: { [uploadMark]: mark } }), {
        abortSignal: signal,
      }),
    );
    if (answer.UploadId === undefined) throw new MillraceError('dfs-unavailable', `no upload id came for ${key}`);
    return answer.UploadId;
  }

  /** The part's tag. `number` from 1. */
  async uploadPart(key: string, uploadId: string, part: { number: number; bytes: Uint8Array }): Promise<string> {
    const { number, bytes } = part;
    const answer = await this.#send({ operation: 'upload-part', key, sizeBytes: bytes.length }, (signal) =>
      this.#client.send(
        new UploadPartCommand({ ...this.#at(key), UploadId: uploadId, PartNumber: number, Body: bytes }),
        { abortSignal: signal },
      ),
    );
    if (answer.ETag === undefined) throw new MillraceError('dfs-unavailable', `no tag came for a part of ${key}`);
    return answer.ETag;
  }

  /** False when there is no such upload (any more). */
  async completeUpload(key: string, uploadId: string, tags: readonly string[]): Promise<boolean> {
    return await this.#send({ operation: 'complete-upload', key }, async (signal) => {
      const Parts = tags.map((ETag, at) => ({ ETag, PartNumber: at + 1 }));
      const command = new CompleteMultipartUploadCommand({
        ...this.#at(key),
        UploadId: uploadId,
        MultipartUpload: { Parts },
      });
      try {
        await this.#client.send(command, { abortSignal: signal });
        return true;
      } catch (error) {
        if (answerOf(error).name === 'NoSuchUpload') return false;
        throw error;
      }
    });
  }

  /** Idempotent. */
  async abortUpload(key: string, uploadId: string): Promise<void> {
    await this.#send({ operation: 'abort-upload', key }, async (signal) => {
      try {
        await this.#client.send(new AbortMultipartUploadCommand({ ...this.#at(key), UploadId: uploadId }), {
          abortSignal: signal,
        });
      } catch (error) {
        if (!isAbsent(error)) throw error;
      }
    });
  }

  #at(key: string): { Bucket: string; Key: string } {
    return { Bucket: this.#bucket, Key: key };
  }

  async #send<T>(call: Call, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    try {
      return await this.#wire.request(call.operation, call.sizeBytes ?? 0, work);
    } catch (error) {
      throw s3Error(error, call.operation, `s3://${this.#bucket}/${call.key}`);
    }
  }
}

/** Name of the metadata that tells whose upload an object is. */
export const uploadMark = 'millrace-upload';

/** Answers to `head` have whole seconds, listings may have more: one time for both. */
function secondsOf(time: Date | undefined): number {
  return Math.floor((time?.getTime() ?? 0) / 1000) * 1000;
}

/** As `application/x-www-form-urlencoded`, which is how S3 encodes keys in listings. */
function urlDecoded(key: string): string {
  return decodeURIComponent(key.replaceAll('+', ' '));
}

interface Body {
  transformToByteArray(): Promise<Uint8Array>;
}

async function bodyOf(body: Body | undefined, sizeBytes: number | undefined): Promise<Uint8Array> {
  const bytes = body === undefined ? new Uint8Array(0) : await body.transformToByteArray();
  if (sizeBytes !== undefined && bytes.length !== sizeBytes) {
    throw new MillraceError('dfs-unavailable', `an answer of ${sizeBytes} bytes ended after ${bytes.length}`);
  }
  return bytes;
}

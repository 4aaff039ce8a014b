import { MillraceError } from '@millrace/kernel';
import type { PartTarget } from '../remote/part-writer.ts';
import type { Wire } from '../remote/wire.ts';
import { type S3Requests, uploadMark } from './s3-requests.ts';

/** The limit of S3. */
const partsMax = 10_000;

/** One file on its way to S3: in one piece, or as an upload in parts, which becomes an object when it is completed. */
export class S3Upload implements PartTarget {
  readonly partBytes: number;
  readonly #requests: S3Requests;
  readonly #wire: Wire;
  readonly #key: string;
  readonly #mark: string;
  readonly #tags: string[] = [];
  #uploadId: Promise<string> | undefined;

  constructor(requests: S3Requests, wire: Wire, file: { readonly key: string; readonly partBytes: number }) {
    this.partBytes = file.partBytes;
    this.#requests = requests;
    this.#wire = wire;
    this.#key = file.key;
    this.#mark = wire.random.hex(16);
  }

  async whole(bytes: Uint8Array): Promise<void> {
    await this.#wire.retried(`put ${this.#key}`, () => this.#requests.put(this.#key, bytes));
  }

  async part(number: number, bytes: Uint8Array): Promise<void> {
    if (number >= partsMax) {
      throw new MillraceError(
        'dfs-no-space',
        `${this.#key} has more than ${partsMax} parts; raise partBytes in the URI`,
        {
          details: { path: this.#key, partBytes: this.partBytes },
        },
      );
    }
    // An upload whose id got lost is none that can become an object.
    this.#uploadId ??= this.#wire.retried(`begin ${this.#key}`, () =>
      this.#requests.createUpload(this.#key, this.#mark),
    );
    const uploadId = await this.#uploadId;
    this.#tags[number] = await this.#wire.retried(`part ${number} of ${this.#key}`, () =>
      this.#requests.uploadPart(this.#key, uploadId, { number: number + 1, bytes }),
    );
  }

  async complete(): Promise<void> {
    const uploadId = (await this.#uploadId) as string;
    await this.#wire.retried(`complete ${this.#key}`, async (attempt) => {
      if (await this.#requests.completeUpload(this.#key, uploadId, this.#tags)) return;
      // The upload is gone: completed by an earlier attempt whose answer was lost, or ended by somebody.
      const found = attempt === 1 ? undefined : await this.#requests.head(this.#key);
      if (found?.metadata[uploadMark] === this.#mark) return;
      throw new MillraceError('dfs-not-found', `the upload of ${this.#key} was ended by somebody else`, {
        details: { path: this.#key },
      });
    });
  }

  async discard(): Promise<void> {
    const uploadId = await this.#uploadId?.catch(() => undefined);
    if (uploadId === undefined) return;
    await this.#wire
      .retried(`abort ${this.#key}`, () => this.#requests.abortUpload(this.#key, uploadId))
      .catch(() => undefined);
  }
}

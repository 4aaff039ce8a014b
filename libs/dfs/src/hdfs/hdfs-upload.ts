import { MillraceError } from '@millrace/kernel';
import type { PartTarget } from '../remote/part-writer.ts';
import type { Wire } from '../remote/wire.ts';
import type { WebHdfs } from './web-hdfs.ts';

export interface UploadPlace {
  /** Where unpublished bytes are, under a name that nobody else knows. */
  readonly temporary: string;
  readonly partBytes: number;
  /** Gives a whole temporary file its name. */
  publish(): Promise<void>;
}

/**
 * One file on its way to HDFS: each part a temporary file, so that one whose data node dies can be sent again by
 * itself; then they are made one file, by names only (CONCAT), and that one gets its name.
 */
export class HdfsUpload implements PartTarget {
  readonly partBytes: number;
  readonly #web: WebHdfs;
  readonly #wire: Wire;
  readonly #place: UploadPlace;
  #begun = 0;

  constructor(web: WebHdfs, wire: Wire, place: UploadPlace) {
    this.partBytes = place.partBytes;
    this.#web = web;
    this.#wire = wire;
    this.#place = place;
  }

  async whole(bytes: Uint8Array): Promise<void> {
    await this.part(0, bytes);
    await this.#place.publish();
  }

  async part(number: number, bytes: Uint8Array): Promise<void> {
    this.#begun = Math.max(this.#begun, number + 1);
    const path = this.#partPath(number);
    await this.#wire.retried(`write ${path}`, () => this.#web.create(path, bytes));
  }

  async complete(parts: number): Promise<void> {
    const [first, ...others] = Array.from({ length: parts }, (_, number) => this.#partPath(number));
    await this.#wire.retried(`concat ${first}`, async (attempt) => {
      if (await this.#web.concat(first as string, others)) return;
      // Parts are gone when an earlier attempt, whose answer was lost, has taken them.
      if (attempt > 1 && (await this.#web.status(first as string)) !== undefined) return;
      throw new MillraceError('dfs-not-found', `a part of ${first} was removed by somebody else`);
    });
    await this.#place.publish();
  }

  async discard(): Promise<void> {
    for (let number = 0; number < this.#begun; number++) {
      await this.#web.remove(this.#partPath(number)).catch(() => undefined);
    }
  }

  #partPath(number: number): string {
    return number === 0 ? this.#place.temporary : `${this.#place.temporary}.${number}`;
  }
}

import { type Clock, MillraceError } from '@millrace/kernel';
import type { Wire } from '../remote/wire.ts';
import { DataNodes } from './data-nodes.ts';
import { connectionError, exceptionOf, remoteError } from './hdfs-errors.ts';
import type { HdfsSettings } from './hdfs-uri.ts';
import { type HttpAnswer, HttpConnections, type HttpRequest } from './http-request.ts';

type Parameters = Readonly<Record<string, string | number>>;

interface Call {
  readonly method: HttpRequest['method'];
  readonly op: string;
  /** Absolute, as HDFS knows it. */
  readonly path: string;
  readonly parameters?: Parameters;
}

/** What HDFS knows of a file or directory. */
export interface HdfsStatus {
  readonly pathSuffix: string;
  readonly type: 'FILE' | 'DIRECTORY';
  readonly length: number;
  readonly modificationTime: number;
}

/** Data nodes asked for one transfer before it counts as failed. */
const dataNodesMax = 3;

/**
 * The requests of WebHDFS that the driver makes, one method each. Absolute paths; failures as MillraceErrors. Name
 * nodes are asked in turn until one that is not in standby answers; transfers go to another data node when one fails.
 */
export class WebHdfs {
  readonly #settings: HdfsSettings;
  readonly #wire: Wire;
  readonly #nodes: DataNodes;
  readonly #connections: HttpConnections;
  #active = 0;

  constructor(settings: HdfsSettings, wire: Wire, clock: Clock) {
    this.#settings = settings;
    this.#wire = wire;
    this.#nodes = new DataNodes(clock);
    this.#connections = new HttpConnections(settings);
  }

  /** Writes a new file, or another one in its place, with the directories above it. */
  async create(path: string, bytes: Uint8Array): Promise<void> {
    await this.#transfer({ method: 'PUT', op: 'CREATE', path, parameters: { overwrite: 'true' } }, { bytes });
  }

  /** Undefined when there is no such file; empty behind its end. Without a range, the whole. */
  async open(
    path: string,
    range?: { readonly offset: number; readonly length: number },
  ): Promise<Uint8Array | undefined> {
    const answer = await this.#transfer({ method: 'GET', op: 'OPEN', path }, { range: range ?? { offset: 0 } });
    if (answer.status === 200) {
      if (range === undefined) this.#wire.received(answer.bytes.length);
      return answer.bytes;
    }
    return exceptionOf(answer).name === 'FileNotFoundException' ? undefined : new Uint8Array(0);
  }

  /** Undefined when there is nothing. */
  async status(path: string): Promise<HdfsStatus | undefined> {
    const answer = await this.#nameNode({ method: 'GET', op: 'GETFILESTATUS', path }, isAbsence);
    return answer.status === 200 ? jsonOf<{ FileStatus: HdfsStatus }>(answer).FileStatus : undefined;
  }

  /** What a directory holds behind the name `after`, and whether there is more; nothing when there is no such directory. */
  async listPage(path: string, after: string): Promise<{ readonly statuses: HdfsStatus[]; readonly isLast: boolean }> {
    const parameters = after === '' ? {} : { startAfter: after };
    const answer = await this.#nameNode({ method: 'GET', op: 'LISTSTATUS_BATCH', path, parameters }, isAbsence);
    if (answer.status !== 200) return { statuses: [], isLast: true };
    const { partialListing, remainingEntries } = jsonOf<{
      DirectoryListing: {
        partialListing: { FileStatuses: { FileStatus: HdfsStatus[] } };
        remainingEntries: number;
      };
    }>(answer).DirectoryListing;
    return { statuses: partialListing.FileStatuses.FileStatus, isLast: remainingEntries === 0 };
  }

  async makeDirectories(path: string): Promise<void> {
    await this.#nameNode({ method: 'PUT', op: 'MKDIRS', path });
  }

  /** Atomic. `exists`: the destination is there and may not be replaced; `missing`: there is no source, or no directory for it. */
  async rename(from: string, to: string, isReplacing: boolean): Promise<'renamed' | 'exists' | 'missing'> {
    this.#nodes.forget(to);
    const parameters = { destination: to, renameoptions: isReplacing ? 'OVERWRITE' : 'NONE' };
    const expected = isReplacing ? isAbsence : isAbsenceOrPresence;
    const answer = await this.#nameNode({ method: 'PUT', op: 'RENAME', path: from, parameters }, expected);
    if (answer.status === 200) return 'renamed';
    return exceptionOf(answer).name === 'FileAlreadyExistsException' ? 'exists' : 'missing';
  }

  /** Appends files, which end to exist, to one of the same directory. Atomic. False when one of them is missing. */
  async concat(path: string, sources: readonly string[]): Promise<boolean> {
    const parameters = { sources: sources.join(',') };
    return (await this.#nameNode({ method: 'POST', op: 'CONCAT', path, parameters }, isAbsence)).status === 200;
  }

  /** A file or an empty directory. False when nothing was removed. */
  async remove(path: string): Promise<boolean> {
    this.#nodes.forget(path);
    const call: Call = { method: 'DELETE', op: 'DELETE', path, parameters: { recursive: 'false' } };
    const answer = await this.#nameNode(call, isUnremovable);
    return answer.status === 200 && jsonOf<{ boolean: boolean }>(answer).boolean;
  }

  close(): void {
    this.#connections.close();
  }

  /** Bytes to or from a data node. Answers 200, 201, or a read of what is not there. */
  async #transfer(
    call: Call,
    transfer: { readonly bytes?: Uint8Array; readonly range?: { readonly offset: number; readonly length?: number } },
  ): Promise<HttpAnswer> {
    const { bytes, range } = transfer;
    for (let attempt = 1; ; attempt++) {
      const known = range === undefined ? undefined : this.#nodes.placeOf(call.path);
      const location = known ?? (await this.#locate(call));
      if (typeof location !== 'string') return location;
      const url = this.#nodes.choose(location);
      if (range !== undefined) setRange(url, range);
      try {
        const request = { method: call.method, url, ...(bytes === undefined ? {} : { body: bytes }) };
        const answer = await this.#send(call, request, bytes?.length ?? range?.length ?? 0);
        this.#nodes.answered(url.host);
        if (answer.status >= 300 && !(range !== undefined && isUnreadable(exceptionOf(answer)))) {
          this.#nodes.forget(call.path);
          throw remoteError(answer, call.op, call.path);
        }
        if (range !== undefined) this.#nodes.remember(call.path, location);
        return answer;
      } catch (error) {
        this.#nodes.forget(call.path);
        if (error instanceof MillraceError && error.details.status !== undefined) throw error;
        this.#nodes.failed(url.host);
        if (attempt >= dataNodesMax) throw error;
      }
    }
  }

  /** The data node that the name node wants asked, or its answer to a read of what is not there. */
  async #locate(call: Call): Promise<string | HttpAnswer> {
    const excluded = this.#nodes.excluded;
    const parameters = {
      ...call.parameters,
      noredirect: 'true',
      ...(excluded === undefined ? {} : { excludedatanodes: excluded }),
    };
    const answer = await this.#nameNode({ ...call, parameters }, call.op === 'OPEN' ? isUnreadable : undefined);
    return answer.status === 200 ? jsonOf<{ Location: string }>(answer).Location : answer;
  }

  /** One request to a name node that is active. Exceptions that are `expected` are answers. */
  async #nameNode(
    call: Call,
    expected?: (exception: { name: string; message: string }) => boolean,
  ): Promise<HttpAnswer> {
    const { nameNodes } = this.#settings;
    for (let asked = 1; ; asked++) {
      const node = this.#active;
      const isLast = asked >= nameNodes.length;
      try {
        const answer = await this.#send(call, { method: call.method, url: this.#url(call) }, 0);
        if (answer.status < 300) return answer;
        const exception = exceptionOf(answer);
        if (expected?.(exception) === true) return answer;
        const isStandby = exception.name === 'StandbyException';
        if (isStandby) this.#next(node);
        if (!isStandby || isLast) throw remoteError(answer, call.op, call.path);
      } catch (error) {
        if (error instanceof MillraceError && error.details.status !== undefined) throw error;
        this.#next(node);
        if (isLast) throw error;
      }
    }
  }

  #next(failed: number): void {
    if (this.#active === failed) this.#active = (failed + 1) % this.#settings.nameNodes.length;
  }

  #url(call: Call): URL {
    const { nameNodes, tls, user } = this.#settings;
    const url = new URL(`${tls ? 'https' : 'http'}://${nameNodes[this.#active]}`);
    url.pathname = `/webhdfs/v1${call.path.split('/').map(encodeURIComponent).join('/')}`;
    url.searchParams.set('op', call.op);
    if (user !== undefined) url.searchParams.set('user.name', user);
    for (const [name, value] of Object.entries(call.parameters ?? {})) url.searchParams.set(name, String(value));
    return url;
  }

  async #send(call: Call, request: HttpRequest, sizeBytes: number): Promise<HttpAnswer> {
    try {
      return await this.#wire.request(call.op.toLowerCase(), sizeBytes, (signal) =>
        this.#connections.send(request, signal),
      );
    } catch (error) {
      throw connectionError(error, call.op, `${call.path} at ${request.url.host}`);
    }
  }
}

function setRange(url: URL, range: { readonly offset: number; readonly length?: number }): void {
  url.searchParams.set('offset', String(range.offset));
  if (range.length === undefined) url.searchParams.delete('length');
  else url.searchParams.set('length', String(range.length));
}

function jsonOf<T>(answer: HttpAnswer): T {
  return JSON.parse(new TextDecoder().decode(answer.bytes)) as T;
}

type Exception = { readonly name: string; readonly message: string };
const isAbsence = ({ name }: Exception): boolean =>
  name === 'FileNotFoundException' || name === 'ParentNotDirectoryException';
const isAbsenceOrPresence = (exception: Exception): boolean =>
  exception.name === 'FileAlreadyExistsException' || exception.name === 'FileNotFoundException';
const isUnremovable = (exception: Exception): boolean =>
  isAbsence(exception) || exception.name === 'PathIsNotEmptyDirectoryException';
/** A read of no file, or behind its end. */
const isUnreadable = (exception: Exception): boolean =>
  isAbsence(exception) || exception.name === 'EOFException' || exception.message.includes('out of the range');

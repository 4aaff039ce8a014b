import { MillraceError } from '@millrace/kernel';
import type { TableInfo } from '../sst/table-info.ts';
import type { KeyRange } from './key-range.ts';
import { type Manifest, type ManifestTable, manifestTable, type SortedRun } from './manifest.ts';

const manifestVersion = 1;

/** Plain JSON; keys in base64. */
export interface ManifestJson {
  readonly version: number;
  readonly l0: ReadonlyArray<readonly TableJson[]>;
  readonly levels: ReadonlyArray<readonly TableJson[]>;
}

interface TableJson extends Omit<TableInfo, 'first' | 'last'> {
  readonly first: string;
  readonly last: string;
  readonly clipStart: string;
  readonly clipEnd?: string;
}

export function manifestToJson(manifest: Manifest): ManifestJson {
  return { version: manifestVersion, l0: manifest.l0.map(runToJson), levels: manifest.levels.map(runToJson) };
}

/** Rejects versions that this program does not know. */
export function manifestFromJson(json: ManifestJson): Manifest {
  if (json.version !== manifestVersion) {
    const message = `a manifest has version ${json.version}; this program reads ${manifestVersion}`;
    throw new MillraceError('lsm-format', message, { details: { version: json.version } });
  }
  return { l0: json.l0.map(runFromJson), levels: json.levels.map(runFromJson) };
}

function runToJson(run: SortedRun): TableJson[] {
  return run.map(({ info, clip }) => ({
    ...info,
    first: toBase64(info.first),
    last: toBase64(info.last),
    clipStart: toBase64(clip.start),
    ...(clip.end === undefined ? {} : { clipEnd: toBase64(clip.end) }),
  }));
}

function runFromJson(run: readonly TableJson[]): ManifestTable[] {
  return run.map(({ first, last, clipStart, clipEnd, ...info }) => {
    const clip: KeyRange = {
      start: fromBase64(clipStart),
      ...(clipEnd === undefined ? {} : { end: fromBase64(clipEnd) }),
    };
    return manifestTable({ ...info, first: fromBase64(first), last: fromBase64(last) }, clip);
  });
}

function toBase64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64');
}

function fromBase64(text: string): Uint8Array {
  return Uint8Array.from(Buffer.from(text, 'base64'));
}

import { MillraceError } from '@millrace/kernel';
import { type Manifest, type ManifestTable, manifestTable, type SortedRun } from './manifest.ts';
import {
  type ClipJson,
  clipFromJson,
  clipToJson,
  type TableInfoJson,
  tableFromJson,
  tableToJson,
} from './table-json.ts';

const manifestVersion = 1;

/** Plain JSON; keys in base64. */
export interface ManifestJson {
  readonly version: number;
  readonly l0: ReadonlyArray<readonly ManifestTableJson[]>;
  readonly levels: ReadonlyArray<readonly ManifestTableJson[]>;
}

type ManifestTableJson = TableInfoJson & ClipJson;

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

function runToJson(run: SortedRun): ManifestTableJson[] {
  return run.map(({ info, clip }) => ({ ...tableToJson(info), ...clipToJson(clip) }));
}

function runFromJson(run: readonly ManifestTableJson[]): ManifestTable[] {
  return run.map(({ clipStart, clipEnd, ...info }) => {
    const clip = clipFromJson({ clipStart, ...(clipEnd === undefined ? {} : { clipEnd }) });
    return manifestTable(tableFromJson(info), clip);
  });
}

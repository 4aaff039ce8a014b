import { crc32 } from 'node:zlib';
import { MillraceError } from '@millrace/kernel';
import type { InFlightFile, InFlightFiles } from '@millrace/streams';
import type { JobStorage } from '@millrace/ufs';

/**
 * Stores what barriers overtook as files of the job. Crash order: the file is sealed, then the holder names it, then the
 * checkpoint names the holder, as with tables; so retention and sweep treat both alike.
 */
export function inFlightFiles(
  { files, holders, namespace }: Pick<JobStorage, 'files' | 'holders' | 'namespace'>,
  generation: number,
): InFlightFiles {
  return {
    async write({ checkpoint, operator, subtask }, data, parent): Promise<InFlightFile> {
      const writer = await files.create(parent);
      await writer.append(data);
      const file = await writer.seal();
      // A uid has no slash, so no table has this name.
      const path = namespace.snapshotPath({ checkpoint, operator: `in-flight/${operator}`, subtask, generation });
      await holders.put(path, { generation, files: [file], value: null }, parent);
      return { id: file.id, sizeBytes: file.sizeBytes, crc32: file.crc32, holders: [path] };
    },
    async read(file): Promise<Uint8Array> {
      const data = await files.open(file).read(0, file.sizeBytes);
      if (crc32(data) === file.crc32) return data;
      const text = `file ${file.id} of records that were in flight is damaged: its checksum is not ${file.crc32}`;
      throw new MillraceError('ufs-corrupt', text, { details: { path: namespace.filePath(file.id) } });
    },
  };
}

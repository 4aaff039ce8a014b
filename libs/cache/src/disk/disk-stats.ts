/** Figures of a disk cache since it was opened. */
export class DiskStats {
  /** Reads answered by a copy, and those that went to the remote file. */
  hits = 0;
  hitBytes = 0;
  misses = 0;
  missBytes = 0;
  /** Copies written through as files were made. */
  written = 0;
  /** Copies loaded because they were read often or again, and their bytes: remote reads that the cache itself makes. */
  loads = 0;
  loadedBytes = 0;
  evictions = 0;
  /** Files that were not written through for want of room. */
  refused = 0;
  readonly failures = {
    /** Copies given up while being written through. */
    write: 0,
    load: 0,
    /** Times that the disk had no space. */
    full: 0,
    /** Copies that were not what was written, and copies that somebody else removed. */
    damaged: 0,
    lost: 0,
    remove: 0,
    /** Other errors of the disk. */
    disk: 0,
  };
}

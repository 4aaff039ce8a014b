export const dfsOperations = [
  'put',
  'putIfAbsent',
  'read',
  'readAll',
  'stat',
  'list',
  'remove',
  'createWriter',
  'append',
  'closeWriter',
  'abortWriter',
] as const;

export type DfsOperation = (typeof dfsOperations)[number];

/** What went through a Dfs since it was opened. Plain fields, for reading at any time. */
export class DfsStats {
  readonly requests: Record<DfsOperation, number>;
  errors = 0;
  bytesRead = 0;
  bytesWritten = 0;

  constructor() {
    this.requests = Object.fromEntries(dfsOperations.map((operation) => [operation, 0])) as Record<
      DfsOperation,
      number
    >;
  }
}

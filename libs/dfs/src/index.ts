export type { Dfs, DfsEntry, DfsWriter } from './dfs.ts';

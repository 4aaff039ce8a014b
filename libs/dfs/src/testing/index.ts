export { dfsConformance, type OpenedDfs } from './conformance.ts';
export {
  type DfsCall,
  type Distance,
  type FaultTiming,
  FaultyDfs,
  type FaultyDfsOptions,
  type Stall,
} from './faulty-dfs.ts';

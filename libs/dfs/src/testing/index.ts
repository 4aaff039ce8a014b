export { dfsConformance, type OpenedDfs } from './conformance.ts';

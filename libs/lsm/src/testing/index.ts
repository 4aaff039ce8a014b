export { type FileOperation, MemoryFileStore } from './memory-file-store.ts';

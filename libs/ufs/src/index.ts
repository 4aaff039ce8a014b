export type { FileReader, FileRef, FileStore, FileWriter } from './file-store.ts';

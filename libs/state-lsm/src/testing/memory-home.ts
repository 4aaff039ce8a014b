import { MillraceError } from '@millrace/kernel';
import { MemoryFileStore } from '@millrace/lsm/testing';
import { type Holder, type HolderStore, JobNamespace } from '@millrace/ufs';

/** A job's durable home in memory: files and holder objects, in plain sight of a test. */
export class MemoryHome implements HolderStore {
  readonly files = new MemoryFileStore();
  readonly namespace = new JobNamespace('job');
  readonly objects = new Map<string, string>();
  beforePut: () => void | Promise<void> = () => undefined;

  async put(path: string, holder: Holder): Promise<void> {
    await this.beforePut();
    const text = JSON.stringify(holder);
    if ((this.objects.get(path) ?? text) !== text) throw new MillraceError('ufs-holder-taken', `${path} is taken`);
    this.objects.set(path, text);
  }

  async read(path: string): Promise<Holder> {
    const text = this.objects.get(path);
    if (text === undefined) throw new MillraceError('ufs-missing', `no ${path}`);
    return JSON.parse(text) as Holder;
  }

  async exists(path: string): Promise<boolean> {
    return this.objects.has(path);
  }
}

import type { ClaimedSlot } from '@millrace/proto';
import { TestRunner } from './test-runner.ts';
import type { Traffic } from './traffic.ts';

/** A runner of the tests in a process of its own: told by IPC where it stands, it deploys and reports. */
export type RunnerProcessCommand = { readonly slots: readonly ClaimedSlot[]; readonly traffic: Traffic };
export type RunnerProcessReport =
  | { readonly kind: 'listening'; readonly claimed: ClaimedSlot }
  | { readonly kind: 'deployed' };

const runner = new TestRunner('child');
const send = (report: RunnerProcessReport): void => void process.send?.(report);
process.on('message', (command: RunnerProcessCommand) => {
  void runner.deploy(command.slots, 1, command.traffic).then(() => send({ kind: 'deployed' }));
});
process.on('disconnect', () => process.exit(0));
send({ kind: 'listening', claimed: await runner.listen() });

import { AsyncExecutionController } from '@millrace/aec';
import { systemClock as clock, isPending } from '@millrace/kernel';
import {
  type AccessScope,
  int64,
  type KeyedState,
  MemoryStateStore,
  openKeyedState,
  primitiveKey,
  value,
  WorkingSet,
} from '@millrace/state';
import { type BenchResult, median } from './result.ts';

/** Few enough that none has to be written behind: nothing but the count is paid for. */
const keys = 1000;
const recordsPerRun = 1_000_000;
const pairs = 9;

const shape = { count: value(int64) };

/** One record of the count, sealed when it is done, as the operator host does it. */
class Call implements AccessScope {
  readonly key: string;
  open = true;
  pending = 0;

  constructor(key: string) {
    this.key = key;
  }

  enter(): void {
    this.pending++;
  }

  leave(): void {
    this.pending--;
  }
}

/**
 * What the controller costs when all state is at hand: the same keyed count, its handler called in a bare loop and through
 * the controller, in turns. Both pay for the record's context, its key and its state.
 */
export async function controllerCost(): Promise<readonly BenchResult[]> {
  const state = await openState();
  const handle = (call: Call): void | Promise<void> => {
    const entry = state.enter(call.key);
    const { count } = state.facade(entry, call);
    const old = count.get();
    if (isPending(old)) throw new Error('state is not at hand');
    count.set((old ?? 0) + 1);
    call.open = false;
    state.leave(entry);
  };
  const names = Array.from({ length: keys }, (_, i) => `key ${i}`);
  const bare = (): number => {
    const startNs = cpuNs();
    for (let i = 0; i < recordsPerRun; i++) {
      if (state.room() !== undefined) throw new Error('the memory store pushes back');
      const pending = handle(new Call(names[i % keys] as string));
      if (isPending(pending)) throw new Error('state is not at hand');
    }
    return (cpuNs() - startNs) / recordsPerRun;
  };
  const controller = new AsyncExecutionController<ReturnType<typeof primitiveKey>, Call>({ handle });
  const controlled = (): number => {
    const startNs = cpuNs();
    for (let i = 0; i < recordsPerRun; i++) {
      if (state.room() !== undefined) throw new Error('the memory store pushes back');
      const call = new Call(names[i % keys] as string);
      if (isPending(controller.admit(primitiveKey(call.key), call))) throw new Error('state is not at hand');
    }
    return (cpuNs() - startNs) / recordsPerRun;
  };
  for (let i = 0; i < 2; i++) void [bare(), controlled()];
  const bareNs: number[] = [];
  const controlledNs: number[] = [];
  for (let i = 0; i < pairs; i++) {
    bareNs.push(bare());
    controlledNs.push(controlled());
  }
  await state.close();
  const ratio = median(controlledNs.map((ns, i) => ns / (bareNs[i] as number)));
  return [
    { bench: 'aec', case: 'keyed count, bare loop', value: median(bareNs), unit: 'ns CPU a record', runs: pairs },
    {
      bench: 'aec',
      case: 'keyed count, through the controller',
      value: median(controlledNs),
      unit: 'ns CPU a record',
      baseline: 'bare loop',
      ratio,
      runs: pairs,
    },
  ];
}

/** CPU time of the process, garbage collection included: other work of the machine does not count. */
function cpuNs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) * 1000;
}

async function openState(): Promise<KeyedState<typeof shape>> {
  const table = await new MemoryStateStore().openTable(
    {
      job: 'bench',
      operator: 'count',
      subtask: 0,
      keyGroups: { start: 0, end: 127 },
      maxParallelism: 128,
      generation: 1,
    },
    [],
  );
  const workingSet = new WorkingSet({ bytesMax: 64 << 20, clock });
  return openKeyedState({ table, restored: false, shape, workingSet, clock });
}

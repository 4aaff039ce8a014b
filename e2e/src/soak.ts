/**
 * Long runs. `npm run soak -- aec`: the property tests of asynchronous execution, with many seeds. `npm run soak --
 * nexmark`: the Nexmark queries on a million events each, through failures. `npm run soak -- rounds`: more than 1,000
 * checkpoint rounds of one attempt, with every history far from Temporal's limits. `npm run soak -- kill`: runners are
 * killed again and again, and the result has to be exact. `npm run soak -- graphs`: random jobs through crashes, rescales
 * and every mode of checkpoint, against one record at a time. `npm run soak -- ufs|sim|faults`: files, records and forks
 * under crashes, stalls and zombies. `npm run soak -- rescale`: a job under load changes its parallelism again and again.
 */
import { parseArgs } from 'node:util';
import { SeededRandom } from '@millrace/kernel';
import { soakGraphs } from './soak/graphs.ts';
import { soakKills } from './soak/kills.ts';
import { soakNexmark } from './soak/nexmark.ts';
import { aecProperties, faultSimulations, simulations, soakProperties, ufsProperties } from './soak/properties.ts';
import { soakRescale } from './soak/rescale.ts';
import { soakRounds } from './soak/rounds.ts';

const help = `Usage: npm run soak -- aec|faults|graphs|kill|nexmark|rescale|rounds|sim|ufs [options]

  aec      property tests of asynchronous execution; a failure prints its seed: MILLRACE_SEED replays it
  faults   checkpoint, compaction, restore, fork and clean-up with a fault at each request in turn
  graphs   random jobs, their state in memory and in the LSM, against one record at a time; a failure prints its seed
  nexmark  queries through a crash, with aligned and with unaligned checkpoints: every row is compared. All of them, or
           those that are named: nexmark q5 q7
  rescale  a job under load, 2 → 4 → 1 subtasks and back ten times: its result is compared, line by line
  rounds   checkpoints every 100 ms until there are more than 1,000 of them, or the time is over (failure)
  kill     runs of the job "orders", each with several kill -9 of runners; each result is compared, line by line
  sim      a bank on the real store: writers that stall, sweeps without grace, chains of forks
  ufs      model tests of files and records under crashes between any two durable steps

  --cases N     aec, ufs: seeds of each property, default 10000; sim: of each simulation, default 1500; faults: default 1;
                graphs: jobs, seeds 1 to N, default 10000
  --events N    nexmark: default 1000000
  --minutes N   rounds: longest time, default 10; kill, rescale: how long new runs are begun, default 10; graphs: random seeds for so
                long, in place of --cases
  --seed S      kill: where and when; default: a random one, which is printed; graphs: this one job, told step by step
  --help        this text

Exit code: 0 passed, 1 failed, 2 wrong usage.`;

function usage(message: string): never {
  console.error(`${message}\n\n${help}`);
  process.exit(2);
}

interface Arguments {
  readonly what: string | undefined;
  readonly names: readonly string[];
  readonly cases: number;
  readonly events: number;
  readonly minutes: number;
  readonly seed: number;
  /** What was named, not what is the default. */
  readonly given: {
    readonly cases: number | undefined;
    readonly minutes: number | undefined;
    readonly seed: number | undefined;
  };
}

function readArguments(): Arguments {
  try {
    const { values, positionals } = parseArgs({
      allowPositionals: true,
      options: {
        cases: { type: 'string' },
        events: { type: 'string' },
        minutes: { type: 'string' },
        seed: { type: 'string' },
        help: { type: 'boolean' },
      },
    });
    if (values.help === true) {
      console.log(help);
      process.exit(0);
    }
    const cases = Number(values.cases ?? 10_000);
    const events = Number(values.events ?? 1_000_000);
    const minutes = Number(values.minutes ?? 10);
    const seed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 31));
    if (!(Number.isSafeInteger(cases) && cases > 0)) usage(`--cases ${values.cases}: give a whole number above 0.`);
    if (!(Number.isSafeInteger(events) && events > 0)) usage(`--events ${values.events}: give a whole number above 0.`);
    if (!(minutes > 0)) usage(`--minutes ${values.minutes}: give a number above 0.`);
    if (!Number.isSafeInteger(seed)) usage(`--seed ${values.seed}: give a whole number.`);
    const [what, ...names] = positionals;
    if (names.length > 0 && what !== 'nexmark') usage(`What is ${names.join(' ')}? Only nexmark takes names.`);
    const given = {
      cases: values.cases === undefined ? undefined : cases,
      minutes: values.minutes === undefined ? undefined : minutes,
      seed: values.seed === undefined ? undefined : seed,
    };
    return { what, names, cases, events, minutes, seed, given };
  } catch (error) {
    return usage(error instanceof Error ? error.message : String(error));
  }
}

const { what, names, cases, events, minutes, seed, given } = readArguments();
const runs: Record<string, () => Promise<void>> = {
  aec: () => soakProperties(aecProperties, cases),
  faults: () => soakProperties(faultSimulations, given.cases ?? 1),
  sim: () => soakProperties(simulations, given.cases ?? 1500),
  ufs: () => soakProperties(ufsProperties, cases),
  nexmark: () => soakNexmark({ queries: names, events }),
  graphs: () => soakGraphs({ cases, minutes: given.minutes, seed: given.seed }),
  rescale: () => soakRescale(minutes * 60_000),
  rounds: () => soakRounds(minutes * 60_000),
  kill: () => {
    console.log(`seed ${seed}`);
    return soakKills(minutes * 60_000, new SeededRandom(seed));
  },
};
const run = what === undefined ? undefined : runs[what];
if (run === undefined) usage(what === undefined ? 'Say what to soak.' : `There is no soak "${what}".`);
try {
  await run();
  console.log('passed');
  process.exit(0);
} catch (error) {
  console.error('failed:', error instanceof Error ? error.message : error);
  process.exit(1);
}

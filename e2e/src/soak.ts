/**
 * Long runs. `npm run soak -- aec`: the property tests of asynchronous execution, with many seeds. `npm run soak -- rounds`: more than 1,000 checkpoint rounds of one attempt, with every history far from
 * Temporal's limits. `npm run soak -- kill`: runners are killed again and again, and the result has to be exact.
 */
import { parseArgs } from 'node:util';
import { SeededRandom } from '@millrace/kernel';
import { soakKills } from './soak/kills.ts';
import { aecProperties, soakProperties } from './soak/properties.ts';
import { soakRounds } from './soak/rounds.ts';

const help = `Usage: npm run soak -- aec|rounds|kill [options]

  aec      property tests of asynchronous execution; a failure prints its seed: MILLRACE_SEED replays it
  rounds   checkpoints every 100 ms until there are more than 1,000 of them, or the time is over (failure)
  kill     runs of the job "orders", each with several kill -9 of runners; each result is compared, line by line

  --cases N     aec: seeds of each property, default 10000
  --minutes N   rounds: longest time, default 10; kill: how long new runs are begun, default 10
  --seed S      kill: where and when; default: a random one, which is printed
  --help        this text

Exit code: 0 passed, 1 failed, 2 wrong usage.`;

function usage(message: string): never {
  console.error(`${message}\n\n${help}`);
  process.exit(2);
}

function readArguments(): { what: string | undefined; cases: number; minutes: number; seed: number } {
  try {
    const { values, positionals } = parseArgs({
      allowPositionals: true,
      options: {
        cases: { type: 'string' },
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
    const minutes = Number(values.minutes ?? 10);
    const seed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 31));
    if (!(Number.isSafeInteger(cases) && cases > 0)) usage(`--cases ${values.cases}: give a whole number above 0.`);
    if (!(minutes > 0)) usage(`--minutes ${values.minutes}: give a number above 0.`);
    if (!Number.isSafeInteger(seed)) usage(`--seed ${values.seed}: give a whole number.`);
    return { what: positionals[0], cases, minutes, seed };
  } catch (error) {
    return usage(error instanceof Error ? error.message : String(error));
  }
}

const { what, cases, minutes, seed } = readArguments();
const runs: Record<string, () => Promise<void>> = {
  aec: () => soakProperties(aecProperties, cases),
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

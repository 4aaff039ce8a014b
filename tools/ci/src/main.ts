/**
 * Adds up what the gate ran and prints the last line `N passed, N failed`.
 * Arguments: result files. `*.json` is a report of vitest; any other file holds one line, `pass NAME` or `fail NAME`.
 */
import { existsSync, readFileSync } from 'node:fs';

interface VitestReport {
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly testResults: readonly { readonly name: string; readonly status: string; readonly message: string }[];
}

let passed = 0;
let failed = 0;

function addVitest(path: string): void {
  const report = JSON.parse(readFileSync(path, 'utf8')) as VitestReport;
  passed += report.numPassedTests;
  failed += report.numFailedTests;
  // A file that does not even load has no test to count.
  const broken = report.testResults.filter((file) => file.status === 'failed' && file.message !== '');
  failed += broken.length;
  for (const file of broken) console.log(`failed to load: ${file.name}`);
}

function addLine(path: string): void {
  const [verdict, name] = readFileSync(path, 'utf8').trim().split(' ');
  if (verdict === 'pass') passed++;
  else failed++;
  console.log(`${verdict === 'pass' ? 'passed' : 'FAILED'}: ${name}`);
}

for (const path of process.argv.slice(2)) {
  if (!existsSync(path)) {
    failed++;
    console.log(`no result: ${path}`);
  } else if (path.endsWith('.json')) addVitest(path);
  else addLine(path);
}
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;

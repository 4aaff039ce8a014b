/** One measured figure. `baseline` and `ratio` (value / baseline value) where it was paired with a yardstick in the same run. */
export interface BenchResult {
  readonly bench: string;
  readonly case: string;
  readonly value: number;
  readonly unit: string;
  readonly baseline?: string;
  readonly ratio?: number;
  readonly [detail: string]: unknown;
}

export function printResult(result: BenchResult, json: boolean): void {
  if (json) {
    process.stdout.write(`${JSON.stringify(result)}\n`);
    return;
  }
  const ratio = result.ratio === undefined ? '' : `  ${result.ratio.toFixed(2)} × ${result.baseline}`;
  const value = result.value.toLocaleString('en-US', { maximumFractionDigits: 1 });
  process.stdout.write(
    `${result.bench.padEnd(10)} ${result.case.padEnd(44)} ${value.padStart(12)} ${result.unit}${ratio}\n`,
  );
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1
    ? (sorted[middle] as number)
    : ((sorted[middle - 1] as number) + (sorted[middle] as number)) / 2;
}

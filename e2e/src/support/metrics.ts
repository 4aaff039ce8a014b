import type { TestStack } from './test-stack.ts';

/** The sum of a metric of a process over all its labels, from its `/metrics`; 0 where it is not there (yet). */
export async function metricOf(run: TestStack, process: string, name: string, label = ''): Promise<number> {
  const address = run.stack.readyLine(process)?.metrics;
  if (typeof address !== 'string') return 0;
  const response = await fetch(`http://${address}/metrics`).catch(() => undefined);
  if (response === undefined) return 0;
  const lines = (await response.text()).split('\n').filter((line) => /^[a-z_0-9]+/.exec(line)?.[0] === name);
  return lines.filter((line) => line.includes(label)).reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
}

import { mkdirSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Client, Connection } from '@temporalio/client';
import proto from '@temporalio/proto';

/**
 * Records histories of workflows for the replay test: node record-histories.ts <host:port> <workflow id>[=<name>] …
 * Run it against a server on which the workflows have run with the code whose histories must stay replayable.
 */
async function main([address, ...wanted]: readonly string[]): Promise<void> {
  if (address === undefined || wanted.length === 0)
    throw new Error('usage: record-histories.ts <host:port> <workflow id>[=<name>] …');
  const directory = fileURLToPath(new URL('../testdata/', import.meta.url));
  mkdirSync(directory, { recursive: true });
  const connection = await Connection.connect({ address });
  const client = new Client({ connection });
  for (const item of wanted) {
    const [workflowId = '', name = workflowId] = item.split('=');
    const history = await client.workflow.getHandle(workflowId).fetchHistory();
    const events = Buffer.from(proto.temporal.api.history.v1.History.encode(history).finish()).toString('base64');
    writeFileSync(`${directory}${name}.history.json`, `${JSON.stringify({ workflowId, events })}\n`);
  }
  await connection.close();
}

await main(process.argv.slice(2));

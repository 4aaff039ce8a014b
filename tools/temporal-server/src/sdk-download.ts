/**
 * Child process: lets the Temporal SDK download its dev server into the directory of the first argument, starts it
 * once to see that it runs, and leaves the file there. A process of its own so that a hanging download can be killed.
 */
import { TestWorkflowEnvironment } from '@temporalio/testing';

const downloadDir = process.argv[2];
if (downloadDir === undefined) throw new Error('usage: sdk-download.ts DIRECTORY');
const environment = await TestWorkflowEnvironment.createLocal({
  server: { executable: { type: 'cached-download', downloadDir } },
});
await environment.teardown();

import { existsSync } from 'node:fs';
import { type Browser, chromium, type Page } from 'playwright-core';
import { eventually, type TestStack } from './test-stack.ts';

export const chromiumPath = '/usr/bin/chromium';

/** Tests by hand in a browser are skipped without it. */
export const hasChromium = existsSync(chromiumPath);

export function openBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath: chromiumPath, args: ['--no-sandbox'] });
}

export interface StartForm {
  readonly id: string;
  readonly workflowType: string;
  /** What a person types into the input's editor; nothing when it is empty. */
  readonly input: string;
}

/** Fills in Temporal's start form as a person does, sends it, and waits until the workflow is there. */
export async function startByForm(run: TestStack, page: Page, { id, workflowType, input }: StartForm): Promise<void> {
  const form = `${run.stack.temporalUi}/namespaces/default/workflows/start-workflow`;
  await page.goto(`${form}?workflowId=${id}&taskQueue=control&workflowType=${workflowType}`);
  const editor = page.locator('.cm-content').first();
  await editor.waitFor();
  if (input !== '') {
    await editor.click();
    await page.keyboard.insertText(input);
    // The form takes the text over when the editor loses the focus.
    await editor.blur();
  }
  await page.getByRole('button', { name: 'Start Workflow', exact: true }).click();
  const { workflow } = run.client.temporal;
  await eventually(`the workflow ${id} is started`, 30_000, () =>
    workflow
      .getHandle(id)
      .describe()
      .catch(() => undefined),
  );
}

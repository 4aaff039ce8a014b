import { MillraceError } from '@millrace/kernel';
import { searchAttributes } from '@millrace/proto/control';
import type { NativeConnection } from '@temporalio/worker';

const typeNames: Readonly<Record<'KEYWORD' | 'INT', string>> = { KEYWORD: 'Keyword', INT: 'Int' };

/** Rejects with `search-attributes-missing`, naming the command that mends it, unless the namespace has all of them. */
export async function requireSearchAttributes(connection: NativeConnection, namespace: string): Promise<void> {
  const { customAttributes } = await connection.operatorService.listSearchAttributes({ namespace });
  const missing = Object.entries(searchAttributes).filter(([name]) => customAttributes[name] === undefined);
  if (missing.length === 0) return;
  const pairs = missing.map(([name, type]) => `--name ${name} --type ${typeNames[type]}`).join(' ');
  throw new MillraceError(
    'search-attributes-missing',
    `Namespace "${namespace}" lacks search attributes. Run: temporal operator search-attribute create --namespace ${namespace} ${pairs}`,
    { details: { namespace, missing: missing.map(([name]) => name).join(',') } },
  );
}

import type { UriSource } from '../uri-parameters.ts';
import { badUri } from '../uri-parameters.ts';
export async function openHdfs(source: UriSource, _o: unknown): Promise<never> { throw badUri(source, 'not yet'); }

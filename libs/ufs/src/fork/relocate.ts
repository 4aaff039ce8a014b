/** How what a parent's holders and checkpoint say is said in the child's namespace. */
export interface Relocation {
  /** Job of each file that is not the child's own, by id. */
  readonly homes: ReadonlyMap<string, string>;
  /** The child's holder for each of the parent's, by path. */
  readonly paths: ReadonlyMap<string, string>;
}

/**
 * `json` with every path of a parent's holder replaced by the child's and every file reference given its home, at any
 * depth: whoever stores files keeps their references as plain JSON, so neither manifests nor checkpoints need code of
 * their own. Ids of files are random, so nothing else is taken for one.
 */
export function relocated<T>(json: T, relocation: Relocation): T {
  return walk(json, relocation) as T;
}

function walk(json: unknown, relocation: Relocation): unknown {
  if (typeof json === 'string') return relocation.paths.get(json) ?? json;
  if (typeof json !== 'object' || json === null) return json;
  if (Array.isArray(json)) return json.map((item) => walk(item, relocation));
  const fields = Object.entries(json).map(([name, value]) => [name, walk(value, relocation)] as const);
  const copy: Record<string, unknown> = Object.fromEntries(fields);
  const { id, sizeBytes, crc32 } = copy;
  if (typeof id === 'string' && typeof sizeBytes === 'number' && typeof crc32 === 'number') {
    const home = relocation.homes.get(id);
    delete copy['home'];
    if (home !== undefined) copy['home'] = home;
  }
  return copy;
}

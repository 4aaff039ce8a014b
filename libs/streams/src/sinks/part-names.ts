/*
 * The names that a file sink gives, and knows again. Hidden files carry the job, the operator and the generation of the
 * attempt, so that no sink touches another's; published ones are what readers of the directory match.
 */
export interface PartOwner {
  readonly job: string;
  readonly uid: string;
  /** Of the names of part files. Default `jsonl`. */
  readonly extension?: string | undefined;
}

export interface PartId {
  readonly subtask: number;
  readonly generation: number;
  readonly checkpoint: number;
}

const number = '(\\d+)';

function pad(value: number): string {
  return String(value).padStart(6, '0');
}

/** Job ids and uids may hold anything; in file names, only letters, digits, `.`, `_` and `-` stay as they are. */
function escape(text: string): string {
  return encodeURIComponent(text).replaceAll(/[!'()*~]/g, (c) => `%${c.charCodeAt(0).toString(16)}`);
}

export function inProgressName(owner: PartOwner, id: Omit<PartId, 'checkpoint'>, sequence: number): string {
  return `${prefixOf('.inprogress-', owner)}${id.subtask}-g${id.generation}-${sequence}.${extensionOf(owner)}`;
}

export function pendingName(owner: PartOwner, id: PartId): string {
  return `${prefixOf('.pending-', owner)}${id.subtask}-g${id.generation}-${id.checkpoint}.${extensionOf(owner)}`;
}

/** Unique in a run: a round's number is never used again, and a restore keeps the generation of who wrote. */
export function publishedName(owner: PartOwner, id: PartId): string {
  return `part-${String(id.subtask).padStart(3, '0')}-${pad(id.checkpoint)}-g${id.generation}.${extensionOf(owner)}`;
}

const publishedPattern = new RegExp(`^part-${number}-${number}-g${number}\\.[a-z]+$`);

/** The generation that wrote a published file; undefined for every other name. */
export function publishedGeneration(name: string): number | undefined {
  const match = publishedPattern.exec(name);
  return match === null ? undefined : Number(match[3]);
}

/** The generation in the name of a hidden file of this owner; undefined for every other name. */
export function hiddenGeneration(owner: PartOwner, name: string): number | undefined {
  for (const kind of ['.inprogress-', '.pending-']) {
    const generation = generationIn(name, prefixOf(kind, owner), /^\d+-g(\d+)-\d+\.[a-z]+$/);
    if (generation !== undefined) return generation;
  }
  return undefined;
}

/** Says which directory this is: one for all subtasks and generations. */
export const ownerMarkerName = '.millrace-owner';

/** What one subtask of one attempt has published. */
export function publishedLogName(owner: PartOwner, id: Omit<PartId, 'checkpoint'>): string {
  return `${prefixOf('.published-', owner)}${id.subtask}-g${id.generation}.json`;
}

export function publishedLogGeneration(owner: PartOwner, name: string): number | undefined {
  return generationIn(name, prefixOf('.published-', owner), /^\d+-g(\d+)\.json$/);
}

function extensionOf({ extension = 'jsonl' }: PartOwner): string {
  return extension;
}

function prefixOf(kind: string, owner: PartOwner): string {
  return `${kind}${escape(owner.job)}-${escape(owner.uid)}-`;
}

function generationIn(name: string, prefix: string, rest: RegExp): number | undefined {
  if (!name.startsWith(prefix)) return undefined;
  const match = rest.exec(name.slice(prefix.length));
  return match === null ? undefined : Number(match[1]);
}

/*
 * The names that a file sink gives, and knows again. Hidden files carry the job, the operator and the generation of the
 * attempt, so that no sink touches another's; published ones are what readers of the directory match.
 */
export interface PartOwner {
  readonly job: string;
  readonly uid: string;
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
  return `.inprogress-${escape(owner.job)}-${escape(owner.uid)}-${id.subtask}-g${id.generation}-${sequence}.jsonl`;
}

export function pendingName(owner: PartOwner, id: PartId): string {
  return `.pending-${escape(owner.job)}-${escape(owner.uid)}-${id.subtask}-g${id.generation}-${id.checkpoint}.jsonl`;
}

/** Unique in a run: a round's number is never used again, and a restore keeps the generation of who wrote. */
export function publishedName(id: PartId): string {
  return `part-${String(id.subtask).padStart(3, '0')}-${pad(id.checkpoint)}-g${id.generation}.jsonl`;
}

const publishedPattern = new RegExp(`^part-${number}-${number}-g${number}\\.jsonl$`);

export function isPublished(name: string): boolean {
  return publishedPattern.test(name);
}

/** The generation in the name of a hidden file of this owner; undefined for every other name. */
export function hiddenGeneration(owner: PartOwner, name: string): number | undefined {
  for (const kind of ['.inprogress-', '.pending-']) {
    const prefix = `${kind}${escape(owner.job)}-${escape(owner.uid)}-`;
    if (!name.startsWith(prefix)) continue;
    const match = /^\d+-g(\d+)-\d+\.jsonl$/.exec(name.slice(prefix.length));
    if (match !== null) return Number(match[1]);
  }
  return undefined;
}

import { MillraceError } from '@millrace/kernel';

/** Where a URI comes from, for messages. */
export interface UriSource {
  readonly uri: string;
  /** Name of the setting. */
  readonly setting: string;
}

/** A refusal that names the setting and the mend. */
export function badUri({ uri, setting }: UriSource, why: string): MillraceError {
  return new MillraceError('bad-setting', `setting "${setting}" is ${JSON.stringify(uri)}: ${why}`, {
    details: { setting, value: uri },
  });
}

/** The parameters behind the `?` of a URI, each taken once and checked; `end` refuses what nobody took. */
export class UriParameters {
  readonly #source: UriSource;
  readonly #values: URLSearchParams;
  readonly #known: string[] = [];

  constructor(source: UriSource, values: URLSearchParams) {
    this.#source = source;
    this.#values = values;
  }

  text(name: string): string | undefined {
    this.#known.push(name);
    const values = this.#values.getAll(name);
    if (values.length > 1) throw badUri(this.#source, `the parameter "${name}" is there twice`);
    if (values[0] === '') throw badUri(this.#source, `the parameter "${name}" is empty`);
    return values[0];
  }

  /** True or false; undefined when it is not given. */
  flag(name: string): boolean | undefined {
    const text = this.text(name);
    if (text === undefined || text === 'true' || text === 'false')
      return text === undefined ? undefined : text === 'true';
    throw badUri(this.#source, `${name} is neither true nor false`);
  }

  /** An integer, or with `k`, `m` or `g` behind it that many times 1024. */
  integer(name: string, min: number, max: number): number | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    const [, digits, unit] = /^(\d{1,15})([kmg]?)$/i.exec(text) ?? [];
    const value = Number(digits) * 1024 ** ['', 'k', 'm', 'g'].indexOf(unit?.toLowerCase() ?? '');
    if (value >= min && value <= max) return value;
    throw badUri(this.#source, `${name} is no number from ${min} to ${max}`);
  }

  end(): void {
    for (const name of this.#values.keys()) {
      if (this.#known.includes(name)) continue;
      const known = [...this.#known].sort().join(', ');
      throw badUri(this.#source, `the parameter "${name}" is unknown; there are ${known}`);
    }
  }
}

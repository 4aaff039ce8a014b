/**
 * The part of the Standard Schema interface (standardschema.dev, version 1) that Millrace calls, so that a job may
 * describe its options with zod, valibot, arktype or anything else that implements it.
 */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

export type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] };

export interface StandardIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** What a schema turns valid input into. */
export type SchemaOutput<S extends StandardSchema> = NonNullable<S['~standard']['types']>['output'];

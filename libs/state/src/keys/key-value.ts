/** What can be a key: compared by content, whatever the order of an object's fields. */
export type KeyValue =
  | string
  | number
  | bigint
  | boolean
  | null
  | Date
  | Uint8Array
  | readonly KeyValue[]
  | { readonly [field: string]: KeyValue };

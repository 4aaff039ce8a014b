/**
 * Paths of the port as HDFS takes them: it refuses a colon. So `:` is written `=3A`, and `=`, which says so, `=3D`.
 * Nothing else changes, and names that Millrace makes have neither.
 */
export function toHdfs(path: string): string {
  return path.replaceAll('=', '=3D').replaceAll(':', '=3A');
}

export function fromHdfs(path: string): string {
  return path.replaceAll('=3A', ':').replaceAll('=3D', '=');
}

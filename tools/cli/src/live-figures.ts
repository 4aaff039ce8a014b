/** What a job is doing right now, over all its slots. */
export interface LiveFigures {
  /** Records that the sources have read since the attempt began. */
  readonly recordsRead: number;
  /** Smallest watermark over the slots, epoch milliseconds. */
  readonly watermarkMs: number | null;
}

/** Asks the console of a control plane; undefined when there is none or it does not answer in time. */
export async function fetchLiveFigures(console: string | undefined, id: string): Promise<LiveFigures | undefined> {
  if (console === undefined) return undefined;
  try {
    const response = await fetch(`${console}/api/jobs/${encodeURIComponent(id)}/live`, {
      signal: AbortSignal.timeout(2000),
    });
    return response.ok ? (((await response.json()) as LiveFigures | null) ?? undefined) : undefined;
  } catch {
    return undefined;
  }
}

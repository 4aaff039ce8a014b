import type { TableResponse } from '@millrace/proto';
import type { ScanPage } from '@millrace/state';
import type { SentRequest } from './stream/table-stream.ts';
import { pageFromWire } from './wire/packed.ts';

/** What a scan asks of its table's stream. */
export interface ScanCalls {
  /** Asks for the next page of the scan that request `scan` opened. */
  next(scan: number): SentRequest;
  /** Ends the scan at the service; does nothing when the table is gone. */
  close(scan: number): void;
  /** Throws when the table is closed or lost. */
  check(): void;
}

/** Pages in order, one fetched ahead. The view was taken when the scan was opened; it is freed when the reader leaves. */
export async function* remoteScan(opened: SentRequest, calls: ScanCalls): AsyncGenerator<ScanPage, void, undefined> {
  const scan = opened.sequence;
  let isOpen = true;
  try {
    for (let answer = opened.answer; ; ) {
      const parts = await answer.catch((error: unknown) => {
        isOpen = false; // the service has dropped a scan that failed
        throw error;
      });
      calls.check();
      isOpen = !parts.some(isLast);
      if (isOpen) answer = calls.next(scan).answer;
      for (const part of parts) {
        const page = part.kind.case === 'page' ? pageFromWire(part.kind.value) : undefined;
        if (page !== undefined) yield page;
        calls.check();
      }
      if (!isOpen) return;
    }
  } finally {
    if (isOpen) calls.close(scan);
  }
}

function isLast(part: TableResponse): boolean {
  return part.kind.case === 'page' && part.kind.value.last;
}

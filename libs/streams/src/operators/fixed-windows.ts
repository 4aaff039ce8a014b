import { type FixedWindows, type Window, windowStart } from '../api/windows.ts';

/** The windows that hold a time, the one that ends last first. */
export function windowsAt(windows: FixedWindows, timeMs: number): readonly Window[] {
  switch (windows.kind) {
    case 'tumbling': {
      const startMs = windowStart(windows, timeMs);
      return [{ startMs, endMs: startMs + windows.sizeMs }];
    }
    case 'sliding': {
      const { sizeMs, everyMs, offsetMs } = windows;
      const found: Window[] = [];
      const newestMs = windowStart({ sizeMs: everyMs, offsetMs }, timeMs);
      for (let startMs = newestMs; startMs > timeMs - sizeMs; startMs -= everyMs) {
        found.push({ startMs, endMs: startMs + sizeMs });
      }
      return found;
    }
    case 'cumulative': {
      const { sizeMs, stepMs } = windows;
      const found: Window[] = [];
      const startMs = windowStart(windows, timeMs);
      for (let endMs = startMs + sizeMs; endMs > timeMs; endMs -= stepMs) found.push({ startMs, endMs });
      return found;
    }
  }
}

/** End of the last window that holds a time; −∞ when there is none. */
export function lastEndAt(windows: FixedWindows, timeMs: number): number {
  if (windows.kind !== 'sliding') return windowStart(windows, timeMs) + windows.sizeMs;
  const startMs = windowStart({ sizeMs: windows.everyMs, offsetMs: windows.offsetMs }, timeMs);
  return startMs > timeMs - windows.sizeMs ? startMs + windows.sizeMs : Number.NEGATIVE_INFINITY;
}

/** What names a window in state: its start where that is enough. */
export function namespaceOf(windows: FixedWindows, window: Window): number {
  return windows.kind === 'cumulative' ? window.endMs : window.startMs;
}

export function windowNamed(windows: FixedWindows, namespace: number): Window {
  if (windows.kind === 'cumulative') return { startMs: windowStart(windows, namespace - 1), endMs: namespace };
  return { startMs: namespace, endMs: namespace + windows.sizeMs };
}

import { errorToJson, MillraceError } from '@millrace/kernel';
import { prometheusContentType } from '@millrace/telemetry';
import { Hono } from 'hono';
import type { JobsView } from './jobs-view.ts';
import { page } from './page.ts';

export interface ConsoleOptions {
  readonly jobs: JobsView;
  /** Prometheus text. */
  readonly metrics: () => string | Promise<string>;
  /** Whether workflows are being polled for. */
  readonly healthy: () => boolean;
}

/** The console's routes: a status page, JSON, metrics, health. Reads only. */
export function consoleApp(options: ConsoleOptions): Hono {
  const { jobs } = options;
  const app = new Hono();
  app.get('/', (context) => context.html(page));
  app.get('/api/jobs', async (context) => context.json(await jobs.list()));
  app.get('/api/jobs/:id', async (context) => context.json(await jobs.get(context.req.param('id'))));
  app.get('/api/jobs/:id/live', async (context) => context.json((await jobs.live(context.req.param('id'))) ?? null));
  app.get('/metrics', async (context) =>
    context.body(await options.metrics(), 200, { 'content-type': prometheusContentType }),
  );
  app.get('/healthz', (context) => {
    const healthy = options.healthy();
    return context.json({ healthy, ...(healthy ? {} : { reason: 'not connected to Temporal' }) }, healthy ? 200 : 503);
  });
  app.notFound((context) => context.json({ code: 'not-found', message: `No route ${context.req.path}` }, 404));
  app.onError((error, context) => {
    const { stack: _, ...json } = errorToJson(error);
    const { code, kind } = MillraceError.from(error);
    return context.json(json, code === 'job-not-found' ? 404 : kind === 'setup' || kind === 'retry' ? 503 : 500);
  });
  return app;
}

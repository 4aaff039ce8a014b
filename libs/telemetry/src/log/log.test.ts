import { MillraceError } from '@millrace/kernel';
import { ManualClock } from '@millrace/kernel/testing';
import { expect, test } from 'vitest';
import type { Logger } from '../ports.ts';
import type { Environment } from '../trace/trace-settings.ts';
import { startLogging } from './start-logging.ts';

function logging(env: Environment, isTty = false): { log: Logger; lines: string[] } {
  const lines: string[] = [];
  const target = { write: (line: string) => void lines.push(line) };
  return { log: startLogging({ service: 'task-runner', clock: new ManualClock(), env, target, isTty }), lines };
}
const trace = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';

test('a line is JSON with service, time of the injected clock, fields of the child and trace id', () => {
  const { log, lines } = logging({});
  log.child({ job: 'flights', generation: 3 }).info('restored', { trace, bytes: 10n });
  expect(lines).toHaveLength(1);
  expect(JSON.parse(lines[0] as string)).toMatchObject({
    level: 30,
    time: new ManualClock().nowMs(),
    service: 'task-runner',
    job: 'flights',
    generation: 3,
    traceId: '0af7651916cd43dd8448eb211c80319c',
    spanId: 'b7ad6b7169203331',
    bytes: '10',
    msg: 'restored',
  });
});

test('an error is logged with code, kind and stack', () => {
  const { log, lines } = logging({});
  log.error('lost', { error: new MillraceError('attempt-fenced', 'newer', { details: { newest: 4 } }) });
  const { error } = JSON.parse(lines[0] as string) as { error: object };
  expect(error).toMatchObject({ code: 'attempt-fenced', kind: 'fenced', message: 'newer', details: { newest: 4 } });
  expect(error).toHaveProperty('stack');
});

test('on a terminal a line is text for a person', () => {
  const { log, lines } = logging({}, true);
  log.warn('slow reader', { slot: 3, why: 'two words' });
  expect(lines[0]).toMatch(/^\d\d:\d\d:\d\d\.\d{3} WARN {2}slow reader slot=3 why="two words"\n$/);
});

test('MILLRACE_LOG_LEVEL and MILLRACE_LOG win over the defaults', () => {
  const { log, lines } = logging({ MILLRACE_LOG_LEVEL: 'error', MILLRACE_LOG: 'json' }, true);
  log.debug('no');
  log.warn('no');
  log.error('yes');
  expect(lines.map((line) => (JSON.parse(line) as { msg: string }).msg)).toEqual(['yes']);
});

test.each([{ MILLRACE_LOG_LEVEL: 'loud' }, { MILLRACE_LOG: 'xml' }])('%o is refused, naming what is allowed', (env) => {
  expect(() => logging(env)).toThrow(/allowed: /);
});

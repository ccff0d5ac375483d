import { expect, test } from 'vitest';
import { requestLogLines } from '../../src/wiring/store-lines.ts';

test('of an outage each reason is told once, a few at most, and its end', () => {
  const lines: string[] = [];
  const { onAway, onBack } = requestLogLines({
    warn: (fields: object, text: string) => void lines.push(`${text} ${JSON.stringify(fields)}`),
    info: (text: string) => void lines.push(text),
  } as never);
  const away = (reason: unknown): void => onAway?.(reason);
  for (const reason of [new Error('disk full'), new Error('no answer'), new Error('disk full'), 'a text'])
    away(reason);
  onBack?.();
  for (let port = 0; port < 50; port += 1) away(new Error(`connect ${port}`));
  const line = (reason: string): string =>
    `log rows do not reach Postgres: they wait in the spool {"reason":"${reason}"}`;
  expect(lines).toEqual([
    ...['disk full', 'no answer', 'a text'].map(line),
    'log rows reach Postgres again',
    ...['connect 0', 'connect 1', 'connect 2', 'connect 3', 'connect 4'].map(line),
  ]);
});

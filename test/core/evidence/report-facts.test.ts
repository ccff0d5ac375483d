import { expect, test } from 'vitest';
import { reportFacts } from '../../../src/core/evidence/report-facts.ts';
import { parseTimestampMicros } from '../../../src/core/timestamp.ts';

const micros = (text: string): bigint => parseTimestampMicros(text) ?? 0n;
const origin = { gateway: '0.1.0', userId: null, storageRegion: null, publicKey: 'k' };

test.each([
  ['long after its period', '2026-12-05T00:00:00Z', '2026-12-01T00:00:00.000000Z'],
  ['a minute after it', '2026-12-01T00:01:00Z', '2026-12-01T00:00:00.000000Z'],
  ['as it ends', '2026-12-01T00:00:00Z', '2026-11-30T23:59:00.000000Z'],
])(
  'a report that is read %s is complete until its end, or until a minute before the reading',
  (_, readAt, until) => {
    const moment = { readMicros: micros(readAt), oldestMicros: null };
    expect(reportFacts(origin, moment, micros('2026-12-01T00:00:00Z'))).toMatchObject({
      complete_until: until,
      oldest_row: null,
    });
  },
);

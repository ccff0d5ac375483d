import { generateKeyPairSync } from 'node:crypto';
import type { ReportVerdict } from '../../../src/core/evidence/check-report.ts';
import { ReportCheck } from '../../../src/core/evidence/check-report.ts';
import { publicKeyText, signerWith } from '../../../src/core/evidence/evidence-key.ts';
import { LineSplitter } from '../../../src/core/evidence/line-splitter.ts';
import type { EvidenceRow } from '../../../src/core/evidence/listed-request.ts';
import type { ReportFacts } from '../../../src/core/evidence/report-facts.ts';
import { ReportWriter } from '../../../src/core/evidence/write-report.ts';
import type { Period } from '../../../src/core/timestamp.ts';
import { parseTimestampMicros } from '../../../src/core/timestamp.ts';

/** Reports for tests, as the command writes them. */

export const microsOf = (text: string): bigint => parseTimestampMicros(text) ?? 0n;

export const key = generateKeyPairSync('ed25519').privateKey;
export const otherKey = generateKeyPairSync('ed25519').privateKey;

/** Half an hour at its beginning, and five hours of which nothing happened in the second. */
export const period: Period = {
  sinceMicros: microsOf('2026-11-10T09:30:00Z'),
  untilMicros: microsOf('2026-11-10T14:00:00Z'),
};

export const userId = '11111111-1111-4111-8111-111111111111';
const keyId = '22222222-2222-4222-8222-222222222222';

export function rowAt(time: string, id: number, change: Partial<EvidenceRow> = {}): EvidenceRow {
  const served = {
    provider: 'sarvam',
    model: 'sarvam-m',
    status: 200,
    reason: 'served',
    latency_ms: 5,
  } as const;
  return {
    id: BigInt(id),
    created_micros: microsOf(`2026-11-10T${time}Z`),
    user_id: userId,
    request_id: `request-${id}`,
    mode: 'gw/balanced',
    residency_bound_by: 'request',
    status: 'success',
    error: null,
    residency_actual: 'india',
    provider: 'sarvam',
    model: 'sarvam-m',
    key_id: keyId,
    cache: null,
    tables_version: 'v',
    attempts: [{ ...served, end: 'served', residency: 'india', address_class: 'public' }],
    ...change,
  };
}

const refused: Partial<EvidenceRow> = {
  residency_bound_by: 'user',
  status: 'error',
  error: 'residency_error: No provider in India can take it: none is stored.',
  provider: 'none',
  model: 'none',
  key_id: null,
  attempts: [],
};

export const rows: readonly EvidenceRow[] = [
  rowAt('09:30:00', 1),
  rowAt('09:59:59.999999', 2, { residency_bound_by: 'deployment' }),
  rowAt('11:00:00', 3, refused),
  rowAt('11:00:00', 4, { residency_actual: 'cache', provider: 'cache', attempts: [], key_id: null }),
  rowAt('11:30:00', 5),
  rowAt('13:00:00', 6),
];

export const facts: ReportFacts = {
  gateway: '0.1.0',
  user_id: null,
  storage_region: 'ap-south-1',
  read_at: '2026-11-20T10:00:00.000000Z',
  complete_until: '2026-11-10T14:00:00.000000Z',
  oldest_row: '2026-11-01T00:00:00.000000Z',
  public_key: publicKeyText(key),
};

interface Parts {
  readonly facts?: Partial<ReportFacts>;
  readonly rows?: readonly EvidenceRow[];
  readonly untilMicros?: bigint;
  readonly signedWith?: typeof key;
}

/** Its text; each hour has ten rows beside those that are listed. */
export function reportOf(parts: Parts = {}): string {
  const writer = new ReportWriter({ ...period, untilMicros: parts.untilMicros ?? period.untilMicros });
  const listed = parts.rows ?? rows;
  const all = new Map(
    [9, 10, 11, 12, 13].map((hour) => {
      const text = `2026-11-10T${String(hour).padStart(2, '0')}:00:00Z`;
      const from = microsOf(text);
      const within = listed.filter(
        ({ created_micros: at }) => BigInt(at) >= from && BigInt(at) < from + 3_600_000_000n,
      );
      return [from, 10 + within.length] as const;
    }),
  );
  return (
    writer.begin({ ...facts, ...parts.facts }) +
    writer.hours(microsOf('2026-11-10T09:00:00Z'), all) +
    writer.requests(listed) +
    writer.end(signerWith(parts.signedWith ?? key))
  );
}

export function verdictOf(
  bytes: Buffer | string,
  publicKey: string | null = publicKeyText(key),
  pieceBytes = 64 * 1024,
): ReportVerdict {
  const check = new ReportCheck(publicKey);
  const splitter = new LineSplitter();
  const whole = Buffer.from(bytes);
  for (let at = 0; at < whole.length; at += pieceBytes) {
    for (const line of splitter.push(whole.subarray(at, at + pieceBytes))) check.take(line);
  }
  return check.finish(splitter.rest);
}

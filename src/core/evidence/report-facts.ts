import { formatTimestampMicros } from '../timestamp.ts';
import type { ReportHeader } from './report-lines.ts';

/** What the header says beside the period. */
export type ReportFacts = Omit<ReportHeader, 'kind' | 'format' | 'from' | 'to' | 'hash'>;

/** Rows are committed within 50 ms of their request or go to the spool; clocks of hosts may differ by more. */
const settlingMicros = 60_000_000n;

/** Who makes a report, of whom. */
export interface ReportOrigin {
  /** The release. */
  readonly gateway: string;
  /** Null: of all users. */
  readonly userId: string | null;
  readonly storageRegion: string | null;
  /** SPKI, base64. */
  readonly publicKey: string;
}

/** When the log was read. Microseconds since the epoch. */
export interface ReportMoment {
  readonly readMicros: bigint;
  /** Null: the log is empty. */
  readonly oldestMicros: bigint | null;
}

/** `untilMicros`: where the period ends, and with it what a report can be complete for. */
export function reportFacts(
  { gateway, userId, storageRegion, publicKey }: ReportOrigin,
  { readMicros, oldestMicros }: ReportMoment,
  untilMicros: bigint,
): ReportFacts {
  const settledMicros = readMicros - settlingMicros;
  return {
    gateway,
    user_id: userId,
    storage_region: storageRegion,
    read_at: formatTimestampMicros(readMicros),
    complete_until: formatTimestampMicros(settledMicros < untilMicros ? settledMicros : untilMicros),
    oldest_row: oldestMicros === null ? null : formatTimestampMicros(oldestMicros),
    public_key: publicKey,
  };
}

/**
 * Timestamps as microseconds since the epoch, the resolution of Postgres and of every `created_at`
 * (SPEC 2.2, 2.5). `Date` knows the calendar, but it holds milliseconds and reads far more than ISO 8601: the form is
 * checked here, and so is that a date shows again as it was written.
 */

const iso =
  /^(\d{4}-\d{2}-\d{2})[Tt](\d{2}:\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?(?:[Zz]|([+\- ])(\d{2})(?::?(\d{2}))?)$/;

const microsPerSecond = 1_000_000n;
export const microsPerHour = 3_600_000_000n;
/** 0001-01-01T00:00:00Z: what Postgres and the timestamp text both hold begins there. */
export const earliestMicros = -62_135_596_800_000_000n;
/** 9999-12-31T23:59:59.999999Z: nothing later can be written. */
export const latestMicros = 253_402_300_799_999_999n;

/** `YYYY-MM-DDTHH:MM:SS`: the part of an ISO text above its fraction. */
const wholeSecondsLength = 19;

/** Seconds since the epoch of a UTC `YYYY-MM-DDTHH:MM:SS`; null where there is no such day or time. */
function secondsOf(text: string): number | null {
  const date = new Date(`${text}Z`);
  if (Number.isNaN(date.getTime())) return null;
  // 30 February would be 2 March, and 24:00 the day after.
  return date.toISOString().slice(0, wholeSecondsLength) === text ? date.getTime() / 1000 : null;
}

/**
 * Reads an ISO 8601 date and time with a time zone (SPEC 4.6, `since`); seconds may be left out and
 * digits below a microsecond are cut off. Returns null for anything else: no zone, an impossible date,
 * `infinity`, `tomorrow`, a year outside 0001-9999. A space before the offset counts as `+`, because that
 * is what an unescaped `+` in a query string turns into.
 */
export function parseTimestampMicros(text: string): bigint | null {
  const match = iso.exec(text);
  if (match === null) return null;
  const [, day, minute, second = '00', digits = '', sign, hours = '0', minutes = '0'] = match;
  const [zoneHours, zoneMinutes] = [Number(hours), Number(minutes)];
  const seconds = secondsOf(`${day}T${minute}:${second}`);
  if (seconds === null || zoneHours > 23 || zoneMinutes > 59) return null;
  const offsetSeconds = (sign === '-' ? -1 : 1) * (zoneHours * 3600 + zoneMinutes * 60);
  const fraction = BigInt(digits.padEnd(6, '0').slice(0, 6));
  const micros = BigInt(seconds - offsetSeconds) * microsPerSecond + fraction;
  return micros < earliestMicros || micros > latestMicros ? null : micros;
}

/**
 * `YYYY-MM-DDTHH:MM:SS.ffffffZ`. The argument is within years 0001-9999, as Postgres rows and
 * `parseTimestampMicros` are; outside them a RangeError is thrown.
 */
export function formatTimestampMicros(micros: bigint | number): string {
  const exact = BigInt(micros);
  if (exact < earliestMicros || exact > latestMicros) throw new RangeError('timestamp out of range');
  const fraction = ((exact % microsPerSecond) + microsPerSecond) % microsPerSecond;
  const date = new Date(Number((exact - fraction) / 1000n));
  return `${date.toISOString().slice(0, wholeSecondsLength)}.${String(fraction).padStart(6, '0')}Z`;
}

/** From one instant up to another, in microseconds since the epoch; `untilMicros` is exclusive. */
export interface Period {
  readonly sinceMicros: bigint;
  readonly untilMicros: bigint;
}

/** The beginning of its hour, in microseconds since the epoch. */
export function hourOf(micros: bigint): bigint {
  const into = micros % microsPerHour;
  return micros - (into < 0n ? into + microsPerHour : into);
}

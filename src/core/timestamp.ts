/**
 * Timestamps as microseconds since the epoch, the resolution of Postgres and of every `created_at`
 * (SPEC 2.2, 2.5). `Date` is avoided: it holds milliseconds and accepts far more than ISO 8601.
 */

const iso =
  /^(\d{4})-(\d{2})-(\d{2})[Tt](\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?(?:[Zz]|([+\- ])(\d{2})(?::?(\d{2}))?)$/;

const microsPerSecond = 1_000_000n;
const secondsPerDay = 86_400;
/** 0001-01-01T00:00:00Z: what Postgres and the timestamp text both hold begins there. */
export const earliestMicros = -62_135_596_800_000_000n;
/** 9999-12-31T23:59:59.999999Z: nothing later can be written. */
export const latestMicros = 253_402_300_799_999_999n;
const daysByMonth = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

function isLeapYear(year: number): boolean {
  return (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0;
}

function daysInMonth(year: number, month: number): number {
  return month === 2 && isLeapYear(year) ? 29 : (daysByMonth[month - 1] ?? 0);
}

/** Days since 1970-01-01 of a proleptic Gregorian date (H. Hinnant, "chrono-compatible low-level date algorithms"). */
function daysFromCivil(year: number, month: number, day: number): number {
  const shifted = month <= 2 ? year - 1 : year;
  const era = Math.floor(shifted / 400);
  const yearOfEra = shifted - era * 400;
  const dayOfYear = Math.floor((153 * (month > 2 ? month - 3 : month + 9) + 2) / 5) + day - 1;
  const dayOfEra = yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear;
  return era * 146_097 + dayOfEra - 719_468;
}

/** The inverse of `daysFromCivil`. */
function civilFromDays(days: number): { year: number; month: number; day: number } {
  const shifted = days + 719_468;
  const era = Math.floor(shifted / 146_097);
  const dayOfEra = shifted - era * 146_097;
  const yearOfEra = Math.floor(
    (dayOfEra -
      Math.floor(dayOfEra / 1460) +
      Math.floor(dayOfEra / 36_524) -
      Math.floor(dayOfEra / 146_096)) /
      365,
  );
  const dayOfYear = dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100));
  const monthIndex = Math.floor((5 * dayOfYear + 2) / 153);
  const month = monthIndex < 10 ? monthIndex + 3 : monthIndex - 9;
  return {
    year: yearOfEra + era * 400 + (month <= 2 ? 1 : 0),
    month,
    day: dayOfYear - Math.floor((153 * monthIndex + 2) / 5) + 1,
  };
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
  const part = (index: number): number => Number(match[index] ?? 0);
  const [year, month, day, hour, minute, second] = [part(1), part(2), part(3), part(4), part(5), part(6)];
  const [zoneHours, zoneMinutes] = [part(9), part(10)];
  if (month < 1 || month > 12 || day < 1 || day > daysInMonth(year, month)) return null;
  if (hour > 23 || minute > 59 || second > 59 || zoneHours > 23 || zoneMinutes > 59) return null;
  const offsetSeconds = (match[8] === '-' ? -1 : 1) * (zoneHours * 3600 + zoneMinutes * 60);
  const seconds =
    daysFromCivil(year, month, day) * secondsPerDay + hour * 3600 + minute * 60 + second - offsetSeconds;
  const fraction = BigInt((match[7] ?? '').padEnd(6, '0').slice(0, 6));
  const micros = BigInt(seconds) * microsPerSecond + fraction;
  return micros < earliestMicros || micros > latestMicros ? null : micros;
}

function padded(value: number, width: number): string {
  return String(value).padStart(width, '0');
}

/**
 * `YYYY-MM-DDTHH:MM:SS.ffffffZ`. The argument is within years 0001-9999, as Postgres rows and
 * `parseTimestampMicros` are; outside them a RangeError is thrown.
 */
export function formatTimestampMicros(micros: bigint | number): string {
  const exact = BigInt(micros);
  if (exact < earliestMicros || exact > latestMicros) throw new RangeError('timestamp out of range');
  const fraction = Number(((exact % microsPerSecond) + microsPerSecond) % microsPerSecond);
  const seconds = Number((exact - BigInt(fraction)) / microsPerSecond);
  const days = Math.floor(seconds / secondsPerDay);
  const rest = seconds - days * secondsPerDay;
  const { year, month, day } = civilFromDays(days);
  const date = `${padded(year, 4)}-${padded(month, 2)}-${padded(day, 2)}`;
  const time = [Math.floor(rest / 3600), Math.floor(rest / 60) % 60, rest % 60].map((n) => padded(n, 2));
  return `${date}T${time.join(':')}.${padded(fraction, 6)}Z`;
}

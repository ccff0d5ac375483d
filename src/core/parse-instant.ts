import { parseTimestampMicros } from './timestamp.ts';

const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** The form of RFC 9110 5.6.7 that every server in use writes: `Sun, 06 Nov 1994 08:49:37 GMT`. */
const httpDate = /^[A-Z][a-z]{2}, (\d{2}) ([A-Z][a-z]{2}) (\d{4}) (\d{2}:\d{2}:\d{2}) GMT$/;

function isoOfHttpDate(text: string): string | null {
  const match = httpDate.exec(text);
  if (match === null) return null;
  const [, day, monthName = '', year, time] = match;
  const month = months.indexOf(monthName) + 1;
  return month === 0 ? null : `${year}-${String(month).padStart(2, '0')}-${day}T${time}Z`;
}

/** Milliseconds since the epoch of an HTTP-date or an RFC 3339 instant; null for anything else. */
export function parseInstant(text: string): number | null {
  const trimmed = text.trim();
  const micros = parseTimestampMicros(isoOfHttpDate(trimmed) ?? trimmed);
  return micros === null ? null : Number(micros / 1000n);
}

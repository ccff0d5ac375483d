import type { Command } from 'commander';
import { InvalidArgumentError } from 'commander';
import type { Period } from '../core/timestamp.ts';
import { microsPerHour, parseTimestampMicros } from '../core/timestamp.ts';
import { CommandError } from './exit-codes.ts';

const microsPer = { h: microsPerHour, d: 24n * microsPerHour } as const;

/** Microseconds since the epoch of `2026-11-20T10:00:00Z`, `2026-11-20` (its beginning in UTC), `7d` or `12h` ago. */
export function instantArgument(text: string): bigint {
  const ago = /^(\d{1,5})([dh])$/.exec(text);
  if (ago !== null) {
    const [, count = '', unit] = ago;
    return BigInt(Date.now()) * 1000n - BigInt(count) * microsPer[unit as 'd' | 'h'];
  }
  const micros = parseTimestampMicros(/^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00:00Z` : text);
  if (micros !== null) return micros;
  throw new InvalidArgumentError('It must be a date, a time with its zone, or days or hours ago such as 7d.');
}

/** The options that name a period, by these names. */
export function addPeriod(command: Command, from: '--from' | '--since', to: '--to' | '--until'): Command {
  return command
    .requiredOption(`${from} <time>`, 'a date (UTC), a time with its zone, or 7d or 12h ago', instantArgument)
    .option(`${to} <time>`, 'the same, exclusive; now by default', instantArgument);
}

/** `until`: now, unless it is named. Throws CommandError for a period that ends before it begins. */
export function periodOf(sinceMicros: bigint, until: bigint | undefined): Period {
  const untilMicros = until ?? BigInt(Date.now()) * 1000n;
  if (untilMicros > sinceMicros) return { sinceMicros, untilMicros };
  throw new CommandError('usage', 'the period ends before it begins');
}

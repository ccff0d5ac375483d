import type { UpstreamHeaders } from '../core/outcome.ts';
import { parseInstant } from '../core/parse-instant.ts';

/**
 * A longer wait is said as a day: no client waits for it by itself, but one that is given no wait at all repeats at
 * once.
 */
const longestWaitMs = 24 * 60 * 60 * 1000;

const decimal = /^\d+(?:\.\d+)?$/;
/** `1h2m3.5s`, `6m0s`, `120ms`: the durations of the OpenAI reset headers. */
const duration = /^(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?$/;

/**
 * The name of the reset that belongs to a header of what remains, in all the families seen
 * (`x-ratelimit-remaining-tokens`, `anthropic-ratelimit-tokens-remaining`, `x-tokenlimit-remaining`).
 */
function resetName(name: string): string | null {
  return name.includes('limit') && name.includes('remaining') ? name.replace('remaining', 'reset') : null;
}

function firstHeader(headers: UpstreamHeaders, name: string): string | null {
  const value = headers[name];
  const text = Array.isArray(value) ? value[0] : value;
  return text === undefined ? null : text.trim();
}

function bounded(milliseconds: number): number {
  return Math.min(Math.max(0, milliseconds), longestWaitMs);
}

function untilInstant(text: string, nowMs: number): number | null {
  const instant = parseInstant(text);
  return instant === null ? null : bounded(instant - nowMs);
}

function durationMs(text: string): number | null {
  const match = duration.exec(text);
  if (match === null || text === '') return null;
  const [, hours = '0', minutes = '0', seconds = '0', milliseconds = '0'] = match;
  return Number(hours) * 3_600_000 + Number(minutes) * 60_000 + Number(seconds) * 1000 + Number(milliseconds);
}

function resetMs(text: string, nowMs: number): number | null {
  const instant = untilInstant(text, nowMs);
  if (instant !== null) return instant;
  const wait = decimal.test(text) ? Number(text) * 1000 : durationMs(text);
  return wait === null ? null : bounded(wait);
}

/** The longest reset among the dimensions that are used up: all of them stand in the way. */
function exhaustedResetMs(headers: UpstreamHeaders, nowMs: number): number | null {
  let longest: number | null = null;
  for (const name of Object.keys(headers)) {
    const nameOfReset = resetName(name);
    const remaining = nameOfReset === null ? null : firstHeader(headers, name);
    if (nameOfReset === null || remaining === null) continue;
    if (!decimal.test(remaining) || Number(remaining) !== 0) continue;
    const reset = firstHeader(headers, nameOfReset);
    const wait = reset === null ? null : resetMs(reset, nowMs);
    if (wait !== null && (longest === null || wait > longest)) longest = wait;
  }
  return longest;
}

/**
 * Milliseconds the vendor asks to wait: `retry-after-ms`, else `retry-after` (seconds, fractions included, or
 * an HTTP-date, RFC 9110 10.2.3), else the reset of a rate-limit dimension whose remaining is 0 (a duration or
 * an RFC 3339 instant). Negative and unreadable values count as absent; a past date is 0, more than a day is a day.
 */
export function readRetryAfterMs(headers: UpstreamHeaders, nowMs: number): number | null {
  const milliseconds = firstHeader(headers, 'retry-after-ms');
  if (milliseconds !== null && decimal.test(milliseconds)) return bounded(Number(milliseconds));
  const retryAfter = firstHeader(headers, 'retry-after');
  if (retryAfter !== null) {
    const wait = decimal.test(retryAfter)
      ? bounded(Number(retryAfter) * 1000)
      : untilInstant(retryAfter, nowMs);
    if (wait !== null) return wait;
  }
  return exhaustedResetMs(headers, nowMs);
}

import type { FastifyReply } from 'fastify';
import { describe, expect, test } from 'vitest';
import type { Clock } from '../../src/chat/ports.ts';
import { activeLegacyName, markLegacy } from '../../src/http/legacy.ts';
import { testTables } from '../chat/story.ts';

describe('the former name', () => {
  const tables = testTables({ legacy: { name: 'oldname', sunset: '2026-07-23T00:00:00Z' } });
  const clockAt = (instant: string): Clock => ({
    wallMs: () => Date.parse(instant),
    monotonicMs: () => 0,
    stampMicros: () => 0,
  });

  test('is accepted until the last millisecond of 2026-07-22', () => {
    expect(activeLegacyName(tables, clockAt('2026-07-22T23:59:59.999Z'))).toBe('oldname');
    expect(activeLegacyName(tables, clockAt('2026-07-23T00:00:00.000Z'))).toBeNull();
  });

  test('is never accepted where there is none', () => {
    expect(activeLegacyName(testTables(), clockAt('2026-01-01T00:00:00Z'))).toBeNull();
  });

  test('is answered with the dates of its end', () => {
    const headers: Record<string, string> = {};
    const reply = { header: (name: string, value: string) => (headers[name] = value) };
    markLegacy(reply as unknown as FastifyReply, tables);
    expect(headers).toEqual({ deprecation: '@1776902400', sunset: 'Thu, 23 Jul 2026 00:00:00 GMT' });
  });
});

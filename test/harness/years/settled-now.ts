import { randomUUID } from 'node:crypto';
import { noUsage } from '../../../src/core/answer/usage.ts';
import type { SettledRequest } from '../../../src/core/settled-request.ts';

/** A request of that user that was answered just now. */
export function settledNow(userId: string): SettledRequest {
  return {
    rowId: randomUUID(),
    userId,
    requestId: randomUUID(),
    createdAtMicros: Date.now() * 1000,
    mode: 'gw/balanced',
    end: { status: 'success' },
    target: { provider: 'openai', model: 'gpt-6' },
    cachedFrom: null,
    cache: 'bypass',
    keyId: userId,
    usage: { ...noUsage, basis: 'complete', inputTokens: 100, outputTokens: 50 },
    cutAnswer: null,
    givenUpBytes: null,
    latencyMs: 500,
    ttftMs: null,
    costMicroUsd: 100n,
    price: null,
    savedMicroUsd: 0n,
    stream: false,
    residencyBound: null,
    residencyBoundBy: null,
    residencyActual: 'global',
    tier: null,
    skipped: [],
    candidates: [],
    tries: 1,
    tablesVersion: '0123456789abcdef',
    traceId: null,
  };
}

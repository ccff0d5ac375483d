import { randomUUID } from 'node:crypto';
import { newRowsInto } from '../../../src/adapters/postgres/log-insert.ts';
import { createPool } from '../../../src/adapters/postgres/pool.ts';
import { noUsage } from '../../../src/core/answer/usage.ts';
import type { SettledRequest } from '../../../src/core/settled-request.ts';

/**
 * `node commit-child.ts URL USER`: commits one row every few milliseconds, as a gateway does, in a process of its own that
 * nothing else holds up. Each message asks for the times since the one before, in ms; the channel's end is its own.
 */
const [url = '', userId = ''] = process.argv.slice(2);
const everyMs = 10;
/** As many connections as a gateway has for rows. */
const connections = 3;

const pool = createPool(url, connections);
const insert = newRowsInto(pool);
let times: number[] = [];
let failed = 0;

function settled(): SettledRequest {
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
    givenUpCharacters: null,
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

const timer = setInterval(() => {
  const dueMs = performance.now();
  insert([{ settled: settled(), isOther: false }]).then(
    () => times.push(performance.now() - dueMs),
    () => {
      failed += 1;
    },
  );
}, everyMs);

process.on('message', () => {
  process.send?.({ times, failed });
  times = [];
  failed = 0;
});
process.on('disconnect', () => {
  clearInterval(timer);
  void pool.end();
});

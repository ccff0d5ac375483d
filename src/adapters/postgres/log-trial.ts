import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { noUsage } from '../../core/answer/usage.ts';
import type { SettledRequest } from '../../core/settled-request.ts';
import { encodeLogRow } from './encode-log-rows.ts';
import { insertLogRows } from './log-insert.ts';
import { inTransaction } from './pool.ts';

/** Several pages of table and indexes: more than the free room of pages that are there, so that a full disk shows. */
const trialRows = 100;

/** As rows of now are, since the partition of another week may be elsewhere. */
function trialRow(): SettledRequest {
  return {
    rowId: randomUUID(),
    userId: randomUUID(),
    requestId: 'trial',
    createdAtMicros: Date.now() * 1000,
    mode: 'trial',
    end: { status: 'success' },
    target: null,
    cachedFrom: null,
    cache: 'bypass',
    keyId: null,
    usage: noUsage,
    cutAnswer: null,
    givenUpBytes: null,
    latencyMs: 0,
    ttftMs: null,
    costMicroUsd: 0n,
    price: null,
    savedMicroUsd: 0n,
    stream: false,
    residencyBound: null,
    residencyBoundBy: null,
    residencyActual: 'global',
    tier: null,
    skipped: [],
    candidates: [],
    tries: 0,
    tablesVersion: 'trial',
    traceId: null,
  };
}

/**
 * Rejects with why rows cannot be written: Postgres may be up and answer, yet its disk be full, itself read-only, or
 * the table locked or not ours to write. Nobody ever sees the rows of the trial. They are taken back before the commit,
 * and the commit is still one that has to reach the disk, and a synchronous standby.
 */
export async function tryToWriteRows(pool: pg.Pool): Promise<void> {
  const lines = Array.from({ length: trialRows }, () => encodeLogRow(trialRow()));
  await inTransaction(pool, async (client) => {
    await client.query('SAVEPOINT trial');
    await insertLogRows(client, lines);
    await client.query('ROLLBACK TO SAVEPOINT trial');
  });
}

import { expect } from 'vitest';
import type { User } from '../gateway/register.ts';
import { sql } from '../servers/fault-postgres.ts';
import type { VendorPack } from '../vendors/vendor-pack.ts';
import type { LogPage } from '../vendors/wire-types.ts';
import type { Sent } from './fault-load.ts';

interface StoredRow {
  readonly row_id: string;
  readonly request_id: string;
  readonly user_id: string;
  readonly status: string;
  readonly attempts: number;
}

const requestIdInPrompt = /request ([0-9a-f-]{36})/;

export interface LedgerParties {
  readonly databaseUrl: string;
  readonly vendors: VendorPack;
  /** All requests of `users` since their registration. */
  readonly sent: readonly Sent[];
  readonly users: readonly User[];
  /** Not where the gateway was killed in the middle of requests: their rows died with it, and nobody has their answer. */
  readonly everyCallHasItsRow?: boolean;
}

/** What was found wrong, at most a few of each; empty when all is well. */
function few(found: readonly string[]): readonly string[] {
  return found.length <= 5 ? found : [...found.slice(0, 5), `and ${found.length - 5} more`];
}

async function storedRows(url: string, users: readonly User[]): Promise<StoredRow[]> {
  return sql<StoredRow>(
    url,
    `SELECT row_id, request_id, user_id, status, jsonb_array_length(attempts) AS attempts
     FROM request_logs WHERE user_id = ANY($1::uuid[])`,
    [users.map((user) => user.id)],
  );
}

/** Ids of all pages of GET /v1/logs. */
async function listedIds(user: User): Promise<number[]> {
  const ids: number[] = [];
  for (let cursor: string | null = ''; cursor !== null; ) {
    const query: string = cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`;
    const response = await user.client.get(`/v1/logs?limit=1000${query}`);
    expect(response.status, response.text).toBe(200);
    const page = response.json<LogPage>();
    ids.push(...page.data.map((row) => row.id));
    cursor = page.next_cursor;
  }
  return ids;
}

/**
 * Compares what clients saw, the log rows (by SQL, by GET /v1/logs and in the hourly sums) and what vendors
 * received: nothing is missing anywhere and nothing is there twice.
 */
export async function expectLedgersAgree(parties: LedgerParties): Promise<void> {
  const { sent, users, vendors } = parties;
  const rows = await storedRows(parties.databaseUrl, users);
  const rowsOf = Map.groupBy(rows, (row) => row.request_id);
  const calls = vendors.ledger().map((entry) => requestIdInPrompt.exec(entry.bodyText)?.[1] ?? 'unknown');
  const callsOf = Map.groupBy(calls, (id) => id);
  const known = new Map(sent.map((one) => [one.id, one]));

  const doubled = [...rowsOf].filter(([, of]) => of.length > 1).map(([id]) => id);
  expect(few(doubled), 'requests with more than one row').toEqual([]);
  const foreign = [...rowsOf.keys()].filter((id) => !known.has(id));
  expect(few(foreign), 'rows of requests that nobody sent').toEqual([]);
  const lost = sent.filter((one) => one.status === 200 && one.whole && !rowsOf.has(one.id));
  expect(few(lost.map((one) => one.id)), 'whole answers without a row').toEqual([]);
  const misjudged = sent
    .filter((one) => one.status === 200 && one.whole && rowsOf.has(one.id))
    .filter((one) => rowsOf.get(one.id)?.[0]?.status !== 'success')
    .map((one) => `${one.id} ${rowsOf.get(one.id)?.[0]?.status}`);
  expect(few(misjudged), 'whole answers whose row is no success').toEqual([]);
  const unserved = sent.filter((one) => one.status === 200 && !callsOf.has(one.id));
  expect(few(unserved.map((one) => one.id)), 'answers that no vendor gave').toEqual([]);
  const repeated = [...rowsOf.values()]
    .flatMap(([row]) => (row === undefined ? [] : [row]))
    .filter((row) => (callsOf.get(row.request_id)?.length ?? 0) !== row.attempts)
    .map(
      (row) =>
        `${row.request_id}: ${row.attempts} in the row, ${callsOf.get(row.request_id)?.length ?? 0} calls`,
    );
  expect(few(repeated), 'rows whose attempts differ from the calls').toEqual([]);
  if (parties.everyCallHasItsRow ?? true) {
    const unrecorded = [...callsOf.keys()].filter((id) => known.has(id) && !rowsOf.has(id));
    expect(few(unrecorded), 'calls without a row').toEqual([]);
  }
  await expectListedAndSummed(parties, rows);
}

async function expectListedAndSummed(parties: LedgerParties, rows: readonly StoredRow[]): Promise<void> {
  for (const user of parties.users) {
    const listed = await listedIds(user);
    expect(new Set(listed).size, 'GET /v1/logs lists a row once').toBe(listed.length);
    expect(listed.length, 'GET /v1/logs lists every row').toBe(
      rows.filter((row) => row.user_id === user.id).length,
    );
  }
  const [summed] = await sql<{ requests: string }>(
    parties.databaseUrl,
    `SELECT coalesce(sum(requests), 0) + (SELECT count(*) FROM unsummed_requests WHERE user_id = ANY($1::uuid[])) AS requests
     FROM request_rollups WHERE user_id = ANY($1::uuid[])`,
    [parties.users.map((user) => user.id)],
  );
  expect(Number(summed?.requests), 'the hourly sums count every row once').toBe(rows.length);
}

/** When rows are inserted, and which together: each insert is held by the test, and time is the test's. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { beforeEach, expect, test } from 'vitest';
import { RowWriters } from '../../../src/adapters/postgres/row-writers.ts';
import { PendingRow } from '../../../src/adapters/postgres/unsettled-rows.ts';
import { logRow } from './log-rows.ts';

/** Turns that are gathered for at most, and one that begins. */
const allTurns = 9;

let nowMs: number;
let writers: RowWriters;
/** Sizes of the batches so far. */
let batches: number[];
/** Ends the inserts under way, oldest first. */
let held: (() => void)[];

beforeEach(() => {
  nowMs = 0;
  batches = [];
  held = [];
  writers = new RowWriters(
    (rows) =>
      new Promise((resolve) => {
        batches.push(rows.length);
        held.push(resolve);
      }),
    () => nowMs,
  );
});

function newRow(): PendingRow {
  return new PendingRow({ settled: logRow(), isOther: false }, nowMs, nowMs + 50, () => undefined);
}

function add(count: number): PendingRow[] {
  const rows = Array.from({ length: count }, newRow);
  for (const row of rows) writers.add(row);
  return rows;
}

async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await nextTurn();
}

/** Adds rows, lets a writer take them, and ends its insert; what else came meanwhile waits for the next. */
async function write(count: number, meanwhile: number): Promise<void> {
  add(count);
  await turns(1);
  add(meanwhile);
  held.shift()?.();
}

test('rows of one turn are inserted together', async () => {
  add(3);
  expect(batches).toEqual([]);
  await turns(1);
  expect(batches).toEqual([3]);
});

test('what comes behind a batch of few is inserted as soon as that is done', async () => {
  await write(3, 2);
  await turns(1);
  expect(batches).toEqual([3, 2]);
});

test('behind a batch of many, rows of some more turns are inserted together', async () => {
  await write(4, 2);
  for (let turn = 0; turn < 4; turn += 1) {
    await turns(1);
    add(1);
  }
  expect(batches).toEqual([4]);
  await turns(allTurns);
  expect(batches).toEqual([4, 6]);
});

test('nothing is gathered any longer once many are there', async () => {
  await write(4, 2);
  await turns(2);
  add(30);
  await turns(1);
  expect(batches).toEqual([4, 32]);
});

test('nothing is gathered any longer once it takes too long', async () => {
  await write(4, 2);
  await turns(2);
  expect(batches).toEqual([4]);
  nowMs += 4;
  await turns(1);
  expect(batches).toEqual([4, 2]);
});

test('a row that comes when nothing is under way waits for no other, once nothing came behind many', async () => {
  await write(4, 0);
  await turns(allTurns);
  add(1);
  await turns(1);
  expect(batches).toEqual([4, 1]);
});

test('a second writer begins where many wait, and no third', async () => {
  add(1);
  await turns(1);
  add(31);
  await turns(1);
  expect(batches).toEqual([1]);
  add(1);
  await turns(1);
  expect(batches).toEqual([1, 32]);
  add(64);
  await turns(1);
  expect(batches).toEqual([1, 32]);
});

test('a batch has 200 rows at most', async () => {
  add(201);
  await turns(1);
  expect(batches).toEqual([200]);
  held.shift()?.();
  await turns(allTurns);
  expect(batches).toEqual([200, 1]);
});

test('it is stalled while an insert takes too long, and not while rows are gathered', async () => {
  add(8);
  await turns(1);
  nowMs = 250;
  expect(writers.isStalled(250)).toBe(false);
  nowMs = 251;
  expect(writers.isStalled(250)).toBe(true);
  held.shift()?.();
  await turns(1);
  nowMs = 1_000;
  expect(writers.isStalled(250)).toBe(false);
});

test('rows that have their place are not inserted, nor those that were taken out of the queue', async () => {
  const [first, second] = add(2);
  first?.to('dropped');
  await turns(1);
  expect(batches).toEqual([1]);
  const late = add(2);
  expect(writers.takeQueue()).toEqual(late);
  held.shift()?.();
  await turns(allTurns);
  expect(batches).toEqual([1]);
  expect(second?.state).toBe('waiting');
});

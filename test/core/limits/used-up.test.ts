/** What a request takes of its user's limits: all that its attempts used up, and not only what its row says. */
import { expect, test } from 'vitest';
import type { Usage } from '../../../src/core/answer/usage.ts';
import { noUsage } from '../../../src/core/answer/usage.ts';
import type { AttemptRecord, CandidateRecord } from '../../../src/core/attempt-record.ts';
import { usedUp } from '../../../src/core/limits/used-up.ts';
import type { SettledRequest } from '../../../src/core/settled-request.ts';
import type { Price } from '../../../src/core/tables/price.ts';
import { compilePrice } from '../../../src/core/tables/price.ts';
import { logRow } from '../../adapters/postgres/log-rows.ts';

/** A micro-dollar a token of input, two of output. */
const price = compilePrice({ provider: 'openai', model: 'known', input: '1', output: '2' });
const dear = compilePrice({ provider: 'openai', model: 'dear', input: '10', output: '20' });

const used = (inputTokens: number, outputTokens: number): Usage => ({
  ...noUsage,
  basis: 'complete',
  inputTokens,
  outputTokens,
});

let made = 0;

function tried(usage: Usage | null, own: Price | null = price, assumed: Price | null = dear): AttemptRecord {
  made += 1;
  const candidate = { provider: 'openai', model: `m${made}`, price: own, assumedPrice: assumed };
  const served = { end: { kind: 'served' }, firstTokenMs: null } as const;
  return { kind: 'tried', isSent: true, usage, candidate, ...served } as AttemptRecord;
}

/** Without an answer, for this reason. */
function ended(end: object, own: Price | null = price): AttemptRecord {
  return { ...tried(null, own), end } as AttemptRecord;
}

const left = { kind: 'cancelled', reason: 'client-gone' };
const drained = { kind: 'cancelled', reason: 'drain' };
const late = { kind: 'failed', failure: { kind: 'timed-out' } };
const lateForCaller = { kind: 'failed', failure: { kind: 'timed-out', byCallersLimit: true } };

const passedOver = { kind: 'passed-over', provider: 'together', model: 'm' } as CandidateRecord;
/** Its row names the last one that was tried, unless it is said. */
function settled({ candidates = [], ...change }: Partial<SettledRequest>) {
  const target = candidates.findLast((record) => record.kind === 'tried')?.candidate ?? null;
  return usedUp(logRow({ costMicroUsd: 0n, candidates, target, ...change }));
}
const firstOfTwo = tried(used(7, 1));
const cut = { promptBytes: 40, answerBytes: 250, textBytes: 80, unseenMs: 0, mostTokens: null };

test.each<[string, Partial<SettledRequest>, number, bigint]>([
  [
    'an answer as its row has it',
    { usage: used(10, 5), costMicroUsd: 20n, candidates: [tried(used(10, 5))] },
    15,
    0n,
  ],
  [
    'a failed attempt before it, which was paid for as well',
    { usage: used(10, 5), costMicroUsd: 20n, candidates: [tried(used(7, 1), dear), tried(used(10, 5))] },
    23,
    90n,
  ],
  [
    'failed attempts alone, of which the row has the last',
    { usage: used(2, 1), costMicroUsd: 4n, candidates: [tried(used(7, 1)), tried(used(2, 1))] },
    11,
    9n,
  ],
  [
    'failed attempts alone, of which the row has the first',
    {
      usage: used(7, 1),
      costMicroUsd: 9n,
      candidates: [firstOfTwo, tried(null)],
      target: firstOfTwo.candidate,
    },
    8,
    0n,
  ],
  [
    'a failed attempt behind which the client left',
    { usage: noUsage, candidates: [tried(used(7, 1))] },
    8,
    9n,
  ],
  [
    'a model without a price, at the dearest one of its provider',
    { usage: used(10, 5), candidates: [tried(used(10, 5), null)] },
    15,
    200n,
  ],
  [
    'a server of the user, which has no price and whose provider has none',
    { usage: used(10, 5), candidates: [tried(used(10, 5), null, null)] },
    15,
    0n,
  ],
  [
    'an answer that was cut, by what had come of it',
    { usage: noUsage, cutAnswer: cut, candidates: [tried(null)] },
    30,
    50n,
  ],
  [
    'a cut answer of a model without a price',
    { usage: noUsage, cutAnswer: cut, candidates: [tried(null, null)] },
    30,
    500n,
  ],
  [
    'a candidate that was passed over, with nothing',
    { usage: used(10, 5), costMicroUsd: 20n, candidates: [tried(used(10, 5)), passedOver] },
    15,
    0n,
  ],
  [
    'a prompt whose client left before the answer',
    { usage: noUsage, givenUpBytes: 40, candidates: [ended(left)] },
    10,
    10n,
  ],
  [
    'a prompt whose client left once zeros were stated of it',
    { usage: used(0, 0), givenUpBytes: 40, candidates: [{ ...ended(left), usage: used(0, 0) }] },
    10,
    10n,
  ],
  [
    'a prompt that was given up once zeros were stated of it',
    { usage: used(0, 0), givenUpBytes: 40, candidates: [ended(lateForCaller)] },
    10,
    10n,
  ],
  [
    'a prompt whose client left, for a model without a price',
    { usage: noUsage, givenUpBytes: 40, candidates: [ended(left, null)] },
    10,
    100n,
  ],
  [
    'prompts that were given up by a short limit, each time, beside the answer',
    {
      usage: used(10, 5),
      costMicroUsd: 20n,
      givenUpBytes: 40,
      candidates: [ended(lateForCaller), ended(lateForCaller), tried(used(10, 5))],
    },
    35,
    20n,
  ],
  [
    "a vendor that is late by everybody's limit, and the end of the process, with nothing",
    { usage: noUsage, givenUpBytes: 40, candidates: [ended(late), ended(drained)] },
    0,
    0n,
  ],
  [
    'a prompt that was given up before a connection had it, with nothing',
    {
      usage: noUsage,
      givenUpBytes: 40,
      candidates: [lateForCaller, left].map((end) => ({ ...ended(end), isSent: false })),
    },
    0,
    0n,
  ],
  ['nobody who was asked, with nothing', { usage: noUsage, candidates: [] }, 0, 0n],
])('limits take %s', (_name, change, tokens, unstatedMicroUsd) => {
  expect(settled(change)).toEqual({ tokens, unstatedMicroUsd });
});

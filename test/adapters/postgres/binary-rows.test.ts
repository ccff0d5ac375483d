/** Rows in binary form, against an encoding that takes its time; and what of their JSON is put together once. */
import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { columnKinds } from '../../../src/adapters/postgres/column-kinds.ts';
import { binaryRows, encodedColumns } from '../../../src/adapters/postgres/encode-log-rows.ts';
import { noUsage, usageBases } from '../../../src/core/answer/usage.ts';
import type { AttemptRecord, CandidateRecord } from '../../../src/core/attempt-record.ts';
import { attemptRow } from '../../../src/core/attempt-record.ts';
import { candidateFate } from '../../../src/core/candidate-fate.ts';
import { logColumnNames, logColumns } from '../../../src/core/log/log-columns.ts';
import { attemptsJson, fatesJson, storableJson } from '../../../src/core/log/stored-json.ts';
import { residencies } from '../../../src/core/request/residency.ts';
import type { SettledRequest } from '../../../src/core/settled-request.ts';
import { candidateOf, heldKey, testTables } from '../../chat/story.ts';
import { logRow } from './log-rows.ts';

const tables = testTables();
const type = 16_500;

const word = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
};
const big = (value: bigint): Buffer => {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64BE(value);
  return bytes;
};

function bytesOf(kind: string, value: unknown): Buffer {
  switch (kind) {
    case 'uuid':
      return Buffer.from(String(value).replaceAll('-', ''), 'hex');
    case 'boolean':
      return Buffer.of(value === true ? 1 : 0);
    case 'integer':
      return word(Number(value));
    case 'count':
    case 'microUsd':
      return big(BigInt(value as number | bigint));
    case 'json':
      return Buffer.concat([Buffer.of(1), Buffer.from(String(value))]);
    default:
      return Buffer.from(String(value));
  }
}

function plainly(settled: SettledRequest, isOther: boolean): Buffer {
  const created = big(BigInt(settled.createdAtMicros) - 946_684_800_000_000n);
  const head = [word(1184), word(8), created, word(16), word(1), Buffer.of(isOther ? 1 : 0)];
  const values = logColumnNames.flatMap((name) => {
    const { kind, of } = logColumns[name];
    const value = of(settled);
    const { oid } = columnKinds[kind];
    if (value === null) return [word(oid), word(-1)];
    const bytes = bytesOf(kind, value);
    return [word(oid), word(bytes.length), bytes];
  });
  const row = Buffer.concat([word(encodedColumns.length + 2), ...head, ...values]);
  return Buffer.concat([word(row.length), row]);
}

const text = fc.oneof(
  fc.string({ maxLength: 60 }),
  fc.string({ unit: 'binary', maxLength: 60 }),
  fc.constantFrom('gpt-test', 'é', '\ud800', '世'.repeat(2000), 'x'.repeat(40), 'x'.repeat(41)),
);
const count = fc.oneof(fc.nat(), fc.constantFrom(0, 2 ** 31, 2 ** 32, 2 ** 53 - 1, -1, 1 - 2 ** 53));
const integer = fc.integer({ min: 1 - 2 ** 31, max: 2 ** 31 - 1 });
const amount = fc.bigInt({ min: 1n - 2n ** 63n, max: 2n ** 63n - 1n });
const provider = fc.constantFrom('openai', 'anthropic', 'self_hosted');
const end: fc.Arbitrary<AttemptRecord['end']> = fc.oneof(
  { weight: 4, arbitrary: fc.constant({ kind: 'served' as const }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('cut' as const), reason: text }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'cancelled' as const, reason: 'client-gone' as const }) },
);

const answer = fc.record({ id: text, model: text, finishReasons: fc.array(text, { maxLength: 2 }) });

/** All that a record holds varies, whether rows show it or not: what is kept of one must be no other's. */
const tried: fc.Arbitrary<AttemptRecord> = fc
  .record({
    provider,
    model: fc.oneof(fc.constant(null), text),
    residency: fc.constantFrom(...residencies),
    declaredRegion: fc.constantFrom(null, 'mumbai', '"latency_ms":0,"end"'),
    heldBack: fc.boolean(),
    keyId: fc.uuid(),
    rest: fc.record({
      kind: fc.constant('tried' as const),
      number: fc.integer({ min: 1, max: 5 }),
      isSent: fc.boolean(),
      addressClass: fc.constantFrom(null, 'public', 'private'),
      end,
      startedAtMs: fc.nat(),
      durationMs: fc.double({ min: 0, max: 1e6, noNaN: true }),
      firstTokenMs: fc.option(fc.nat()),
      usage: fc.option(
        fc.record({ basis: fc.constantFrom(...usageBases), inputTokens: count, outputTokens: count }),
      ),
      answer: fc.option(answer),
      dropped: fc.constantFrom([], [], ['user', 'a b']),
    }),
  })
  .map(({ provider: of, model, residency, declaredRegion, heldBack, keyId, rest }) => {
    const candidate = candidateOf(of, tables, heldKey(of, { id: keyId, declaredRegion }));
    return {
      ...rest,
      usage: rest.usage === null ? null : { ...noUsage, ...rest.usage },
      candidate: { ...candidate, residency, heldBack, model: model ?? candidate.model },
    } satisfies Record<keyof AttemptRecord, unknown>;
  });
const passedOver: fc.Arbitrary<CandidateRecord> = fc.constant({
  kind: 'passed-over',
  provider: 'together',
  model: 'tog/test',
  reason: 'capability',
  detail: 'tools',
  before: 0,
});

const settled: fc.Arbitrary<SettledRequest> = fc
  .record({
    requestId: text,
    target: fc.constantFrom(null, { provider: 'openai', model: 'gpt-test' } as const),
    keyId: fc.constantFrom(null, randomUUID()),
    inputTokens: count,
    reasoningTokens: count,
    latencyMs: integer,
    ttftMs: fc.oneof(fc.constant(null), integer),
    costMicroUsd: amount,
    savedMicroUsd: amount,
    stream: fc.boolean(),
    tier: fc.constantFrom(null, [], tables.tier('cheap'), tables.tier('balanced')),
    skipped: fc.constantFrom([], [
      { provider: 'sarvam', model: 'sarvam-test', reason: 'no_key', detail: null },
    ] as const),
    candidates: fc.oneof(
      { weight: 3, arbitrary: fc.tuple(tried) },
      { weight: 1, arbitrary: fc.array(fc.oneof(tried, passedOver), { maxLength: 3 }) },
    ),
    tablesVersion: text,
    traceId: fc.oneof(fc.constant(null), text),
    model: text,
  })
  .map(({ model, inputTokens, reasoningTokens, target, ...rest }) => {
    const row = logRow();
    return {
      ...row,
      ...rest,
      target: target === null ? null : { ...target, model },
      usage: { ...row.usage, inputTokens, reasoningTokens },
    };
  });

test('rows are what their columns say, byte by byte', () => {
  fc.assert(
    fc.property(fc.array(fc.record({ settled, isOther: fc.boolean() }), { maxLength: 5 }), (rows) => {
      const head = [1, 0, type, rows.length, 1].map(word);
      const expected = Buffer.concat([...head, ...rows.map((row) => plainly(row.settled, row.isOther))]);
      expect(binaryRows(type, rows).equals(expected)).toBe(true);
    }),
    { numRuns: 500 },
  );
});

test('attempts and fates are what is put together anew', () => {
  fc.assert(
    fc.property(settled, (row) => {
      expect(attemptsJson(row)).toBe(storableJson(row.candidates.map(attemptRow)));
      const fates = row.tier?.map(({ provider: of, model }) => {
        return { provider: of, model, fate: candidateFate({ provider: of, model }, row) };
      });
      expect(fatesJson(row)).toBe(storableJson(fates ?? null) === 'null' ? null : JSON.stringify(fates));
    }),
    { numRuns: 2000 },
  );
});

test.each<[what: string, change: Partial<SettledRequest>]>([
  ['an id that is none', { keyId: 'key-of-openai' }],
  ['an id of another form', { keyId: randomUUID().replaceAll('-', '') }],
  ['an id with another letter', { keyId: `g${randomUUID().slice(1)}` }],
  ['an id with a letter that ends in a digit’s code', { keyId: `\u0130${randomUUID().slice(1)}` }],
  ['an id with a digit for a dash', { keyId: randomUUID().replace('-', '0') }],
  ['a time beyond 32 bits', { latencyMs: 2 ** 31 }],
  ['half a millisecond', { ttftMs: 0.5 }],
  ['an amount beyond 64 bits', { costMicroUsd: 2n ** 63n }],
  ['an amount below 64 bits', { savedMicroUsd: -(2n ** 63n) }],
  ['an instant that is not exact', { createdAtMicros: 2 ** 54 }],
])('%s is refused', (_what, change) => {
  expect(() => binaryRows(type, [{ settled: logRow(change), isOther: false }])).toThrow(RangeError);
});

/** What the gateway does once per request beside reading and writing: against the one JSON.parse of its body. */
import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { binaryRows, encodeLogRow } from '../../src/adapters/postgres/encode-log-rows.ts';
import { createSealer } from '../../src/adapters/system/sealer.ts';
import { costMicroUsd, formatMicroUsd } from '../../src/core/answer/cost.ts';
import type { Usage } from '../../src/core/answer/usage.ts';
import { noUsage } from '../../src/core/answer/usage.ts';
import { planCandidates } from '../../src/core/plan.ts';
import { cachedFor, cacheKey } from '../../src/core/request/cache-key.ts';
import { logRow } from '../adapters/postgres/log-rows.ts';
import { balancedKeys, callOf, candidateOf, heldKey, testTables } from '../chat/story.ts';
import { openAiAnswer } from '../harness/vendors/openai-wire.ts';
import type { Part } from './yardstick.ts';
import { compare } from './yardstick.ts';

/** A part takes about a microsecond, a clock a tenth of it: many at once. */
const times = 100;
const repeat = (work: () => unknown) => () => {
  let last: unknown;
  for (let count = 0; count < times; count += 1) last = work();
  return last;
};

const prompt = 'The quick brown fox jumps over the lazy dog. '.repeat(20);
const call = callOf({ request: { messages: [{ role: 'user', content: prompt }], temperature: 0.2 } });
const body = JSON.stringify(call.request);
const answer = Buffer.from(JSON.stringify(openAiAnswer('gpt-test', { text: [prompt] })));

const sealer = createSealer([{ id: 'k1', key: randomBytes(32) }]);
const key = heldKey('openai');
const secret = `sk-proj-${'x'.repeat(40)}`;
const sealedKey = { ...key, sealed: sealer.seal(secret, key) };
const sealedAnswer = sealer.sealValue(answer, 'answer');

const input = { keys: balancedKeys, isHeldBack: () => false, lacks: () => [] };
const price = testTables().price('openai', 'gpt-test');
const usage: Usage = {
  ...noUsage,
  basis: 'complete',
  inputTokens: 1_234,
  outputTokens: 567,
  cachedInputTokens: 89,
};
const row = logRow({
  usage,
  candidates: [
    {
      kind: 'tried',
      candidate: candidateOf('openai', testTables()),
      isSent: true,
      addressClass: 'public',
      number: 1,
      end: { kind: 'served' },
      startedAtMs: 0,
      durationMs: 120,
      firstTokenMs: null,
      usage,
      answer: null,
      dropped: [],
    },
  ],
});
/** Of the type of new rows, as a database may have it. */
const rowType = 16_500;
const question = { userId: call.userId, options: call.options, mode: call.mode, target: 'balanced' };

const parts: readonly Part[] = [
  {
    name: 'plan: three candidates of a tier',
    run: () => planCandidates(call, input),
  },
  { name: 'provider key: open', run: () => sealer.open(sealedKey) },
  { name: 'provider key: seal', run: () => sealer.seal(secret, key) },
  { name: 'cached answer of 1 KB: open', run: () => sealer.openValue(sealedAnswer, 'answer') },
  { name: 'cached answer of 1 KB: seal', run: () => sealer.sealValue(answer, 'answer') },
  { name: 'cost: price an answer and write it down', run: () => formatMicroUsd(costMicroUsd(usage, price)) },
  {
    name: 'cache key of the request',
    run: () => cacheKey(cachedFor({ ...question, request: call.request })),
  },
  {
    name: 'log row: in binary, for Postgres',
    run: () => binaryRows(rowType, [{ settled: row, isOther: false }]),
  },
  { name: 'log row: as a line of JSON, for the spool', run: () => encodeLogRow(row) },
];

const parse: Part = {
  name: 'JSON.parse of the request',
  run: repeat(() => JSON.parse(body) as unknown),
  times,
};

test('request', async ({ bench }) => {
  expect(planCandidates(call, input)).toMatchObject({ kind: 'planned' });
  expect(sealer.open(sealedKey)?.reveal()).toBe(secret);
  expect(sealer.openValue(sealedAnswer, 'answer')).toEqual(answer);
  expect(price).not.toBeNull();
  await compare(
    bench,
    parse,
    parts.map(({ name, run }) => ({ name, run: repeat(run), times })),
  );
});

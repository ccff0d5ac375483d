import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { HeldKey } from '../../src/core/candidate.ts';
import type { Plan } from '../../src/core/plan.ts';
import { planCandidates } from '../../src/core/plan.ts';
import type { ProviderName } from '../../src/core/provider-name.ts';
import { providerNames, vendorNames } from '../../src/core/provider-name.ts';
import type { Override } from '../../src/core/request/chat-call.ts';
import type { CallParts } from '../chat/story.ts';
import { balancedKeys, callOf, heldKey, testTables } from '../chat/story.ts';
import { tables as tablesInput } from '../harness/gateway/tables.ts';

type Refused = Extract<Plan, { kind: 'refused' }>;

function plan(keys: readonly HeldKey[], parts: CallParts = {}, heldBack: readonly ProviderName[] = []): Plan {
  return planCandidates(callOf(parts), {
    keys,
    isHeldBack: (candidate) => heldBack.includes(candidate.provider),
    lacks: ({ provider }) => (provider === 'together' ? ['multiple_choices'] : []),
  });
}

/** Providers in order, or the error's type and code. */
function summary(result: Plan): string[] {
  if (result.kind === 'planned') return result.candidates.map((candidate) => candidate.provider);
  return [result.error.type, String(result.error.code)];
}

/** What the format of together, in these tests, has no words for. */
const several = { n: 2 };

const keysOf = (...names: ProviderName[]): HeldKey[] => names.map((name) => heldKey(name));
const override = (provider: ProviderName, selector: string | null = null, model = 'm'): Override => ({
  provider,
  selector,
  model,
});
const image = (url: string) => ({
  messages: [{ role: 'user' as const, content: [{ type: 'image_url', image_url: { url } }] }],
});

/** openai lacks vision, sarvam lacks tools, anthropic (as shipped) lacks n above 1. */
const facts = testTables({
  models: [
    { provider: 'openai', match: '', vision: false, context_tokens: 100 },
    { provider: 'sarvam', match: '', tools: false },
    { provider: 'anthropic', match: '', multiple_choices: false },
  ],
});

const toolless = testTables({
  models: providerNames.map((provider) => ({ provider, match: '', tools: false })),
});

/** Together before openai in `gw/balanced`, and nothing said of either. */
const cheapFirst = testTables({
  tiers: { ...tablesInput().tiers, balanced: [...tablesInput().tiers.cheap].slice(0, 3).reverse() },
  models: [],
});

/** openai lacks images, anthropic several choices, sarvam tools and images. */
const divided = testTables({
  models: [
    { provider: 'openai', match: '', vision: false },
    { provider: 'sarvam', match: '', tools: false, vision: false },
    { provider: 'anthropic', match: '', multiple_choices: false },
  ],
});

describe('a tier of which nobody can serve the request names', () => {
  const picture = image('data:image/png;base64,AA');
  const tools = [{ type: 'function' }];
  test.each<
    [
      name: string,
      keys: ProviderName[],
      request: NonNullable<CallParts['request']>,
      what: string,
      param: string,
    ]
  >([
    ['the one feature', ['openai', 'sarvam'], picture, 'image inputs', 'messages'],
    ['the one that all lack', ['sarvam', 'openai'], { ...picture, tools }, 'image inputs', 'messages'],
    [
      'the combination',
      ['openai', 'anthropic'],
      { ...picture, n: 2 },
      'all of: image inputs, n greater than 1',
      'messages',
    ],
    [
      'the combination in one order, whoever comes first',
      ['sarvam', 'anthropic'],
      { n: 2, tools },
      'all of: tool calls, n greater than 1',
      'tools',
    ],
  ])('%s', (_name, keys, request, what, param) => {
    const result = plan(keysOf(...keys), { tables: divided, request }) as Refused;
    expect(result.error.message).toBe(`No candidate of gw/balanced supports ${what}.`);
    expect([result.error.status, result.error.param, result.error.code]).toEqual([
      422,
      param,
      'unsupported_feature',
    ]);
  });
});

describe('the order of candidates', () => {
  test.each<[name: string, keys: HeldKey[], parts: CallParts, heldBack: ProviderName[], expected: string[]]>([
    ['is the tables order', balancedKeys, {}, [], ['openai', 'sarvam', 'anthropic']],
    [
      'does not depend on the order of keys',
      balancedKeys.toReversed(),
      {},
      [],
      ['openai', 'sarvam', 'anthropic'],
    ],
    ['leaves out those without a key', keysOf('anthropic', 'openai'), {}, [], ['openai', 'anthropic']],
    ['never holds a provider outside of the tier', keysOf('together', 'openai'), {}, [], ['openai']],
    ['moves held back ones last', balancedKeys, {}, ['openai'], ['sarvam', 'anthropic', 'openai']],
    [
      'is the tables order when all are held back',
      balancedKeys,
      {},
      ['openai', 'sarvam', 'anthropic'],
      ['openai', 'sarvam', 'anthropic'],
    ],
    [
      'leaves out those that cannot see',
      balancedKeys,
      { tables: facts, request: image('data:image/png;base64,AA==') },
      [],
      ['sarvam', 'anthropic'],
    ],
    [
      'leaves out those that cannot see, when all others are held back',
      balancedKeys,
      { tables: facts, request: image('data:image/png;base64,AA==') },
      ['sarvam', 'anthropic'],
      ['sarvam', 'anthropic'],
    ],
    [
      'leaves out a model whose context is too short',
      balancedKeys,
      { tables: facts, request: { messages: [{ role: 'user', content: 'x'.repeat(808) }] } },
      [],
      ['sarvam', 'anthropic'],
    ],
    [
      'leaves out a vendor that has no words for it, whatever the tables say',
      keysOf('together', 'openai'),
      { tables: cheapFirst, request: { n: 2 } },
      [],
      ['openai'],
    ],
    ['keeps India only', balancedKeys, { options: { residency: 'india' } }, [], ['sarvam']],
    [
      'keeps India even when held back',
      balancedKeys,
      { options: { residency: 'india' } },
      ['sarvam'],
      ['sarvam'],
    ],
  ])('%s', (_name, keys, parts, heldBack, expected) => {
    expect(summary(plan(keys, parts, heldBack))).toEqual(expected);
  });

  test('says why each one was passed over or moved', () => {
    const result = plan(
      keysOf('openai', 'sarvam'),
      { tables: facts, request: image('data:image/png;base64,AA==') },
      ['sarvam'],
    );
    expect(result).toMatchObject({
      skipped: [
        { provider: 'anthropic', reason: 'no_key' },
        { provider: 'openai', reason: 'capability', detail: 'vision' },
        { provider: 'sarvam', reason: 'cooldown' },
      ],
    });
  });

  test.each<[name: string, able: string[], heldBack: ProviderName[], unable: string[]]>([
    ['its own', ['sarvam', 'anthropic'], [], ['openai 0']],
    ['that before a one held back', ['anthropic', 'sarvam'], ['sarvam'], ['openai 0']],
  ])('a candidate that cannot serve keeps a place in it: %s', (_name, able, heldBack, unable) => {
    const parts = { tables: facts, request: image('data:image/png;base64,AA==') };
    const result = plan(balancedKeys, parts, heldBack);
    if (result.kind !== 'planned') throw new Error(result.error.message);
    expect(summary(result)).toEqual(able);
    const places = result.skipped.flatMap((skip) =>
      skip.reason === 'capability' ? [`${skip.provider} ${skip.before}`] : [],
    );
    expect(places).toEqual(unable);
  });

  test('gives each candidate its model, key, residency, facts and price', () => {
    const result = plan(balancedKeys);
    expect(result.kind === 'planned' && result.candidates[1]).toMatchObject({
      provider: 'sarvam',
      model: 'sarvam-test',
      key: { id: 'key-of-sarvam' },
      residency: 'india',
      facts: { api_version: 'v2' },
      price: { provider: 'sarvam', input: 320_000n },
    });
  });
});

describe('a tier that cannot be planned', () => {
  test.each<[name: string, keys: HeldKey[], parts: CallParts, error: string[], forWantOfKey: boolean]>([
    ['no key at all', [], {}, ['invalid_request_error', 'no_provider_key'], true],
    [
      'keys of other providers only',
      keysOf('together', 'self_hosted'),
      {},
      ['invalid_request_error', 'no_provider_key'],
      true,
    ],
    [
      'India without an Indian key',
      keysOf('openai', 'anthropic'),
      { options: { residency: 'india' } },
      ['residency_error', 'residency_unavailable'],
      true,
    ],
    [
      'India without any key',
      [],
      { options: { residency: 'india' } },
      ['residency_error', 'residency_unavailable'],
      true,
    ],
    [
      'an Indian self_hosted key is not routed to',
      [heldKey('self_hosted', { declaredRegion: 'in' })],
      { options: { residency: 'india' } },
      ['residency_error', 'residency_unavailable'],
      true,
    ],
    [
      'nobody held can call tools',
      keysOf('sarvam'),
      { tables: facts, request: { tools: [{ type: 'function' }] } },
      ['invalid_request_error', 'unsupported_feature'],
      true,
    ],
    [
      'nobody in the tier can call tools',
      balancedKeys,
      { tables: toolless, request: { tools: [{ type: 'function' }] } },
      ['invalid_request_error', 'unsupported_feature'],
      false,
    ],
  ])('%s', (_name, keys, parts, error, forWantOfKey) => {
    const result = plan(keys, parts) as Refused;
    expect(summary(result)).toEqual(error);
    expect(result.forWantOfKey).toBe(forWantOfKey);
    expect(result.error.status).toBe(422);
  });

  test('names the body field that nobody can serve', () => {
    const result = plan(keysOf('anthropic'), { tables: facts, request: { n: 2 } }) as Refused;
    expect(result.error.param).toBe('n');
    expect(result.error.message).toBe('No candidate of gw/balanced supports n greater than 1.');
  });
});

const selfHosted = [
  heldKey('self_hosted', { id: 'old', label: 'lab', createdAtMs: 1 }),
  heldKey('self_hosted', { id: 'new', label: 'prod', createdAtMs: 3 }),
  heldKey('self_hosted', { id: 'india', label: 'lab', createdAtMs: 2, declaredRegion: ' AP-South-1 ' }),
];

describe('an override', () => {
  test.each([
    ['the newest of several keys', null, 'new'],
    ['a key by its label', 'prod', 'new'],
    ['the later of two keys with one label', 'lab', 'india'],
    ['a key by its id', 'old', 'old'],
    ['a key by its id in capitals, as DELETE does', 'OLD', 'old'],
  ])('takes %s', (_name, selector, expected) => {
    const result = plan(selfHosted, { options: { override: override('self_hosted', selector) } });
    expect(result.kind === 'planned' && result.candidates.map(({ key }) => key.id)).toEqual([expected]);
  });

  test('has one candidate, whatever the tier, the tables and the cooldown say', () => {
    const result = plan(
      [...balancedKeys, heldKey('together')],
      { options: { override: override('together', null, 'any/model') } },
      ['together'],
    );
    expect(result).toMatchObject({ candidates: [{ provider: 'together', model: 'any/model', price: null }] });
  });

  test.each<[name: string, target: Override, residency: 'india' | null, request: object, error: string[]]>([
    ['without a key', override('together'), null, {}, ['invalid_request_error', 'no_provider_key']],
    [
      'with a label in another case',
      override('self_hosted', 'PROD'),
      null,
      {},
      ['invalid_request_error', 'no_provider_key'],
    ],
    [
      'with an unknown label',
      override('self_hosted', 'nope'),
      null,
      {},
      ['invalid_request_error', 'no_provider_key'],
    ],
    [
      'to a global vendor for India',
      override('openai'),
      'india',
      {},
      ['residency_error', 'residency_unavailable'],
    ],
    [
      'to a global vendor for India, without a key',
      override('together'),
      'india',
      {},
      ['residency_error', 'residency_unavailable'],
    ],
    [
      'to a server elsewhere for India',
      override('self_hosted', 'prod'),
      'india',
      {},
      ['residency_error', 'residency_unavailable'],
    ],
    [
      'to a vendor whose format has no words for it',
      override('together'),
      null,
      several,
      ['invalid_request_error', 'unsupported_feature'],
    ],
  ])('is refused %s', (_name, target, residency, request, error) => {
    const keys = [...balancedKeys, ...selfHosted, ...(request === several ? keysOf('together') : [])];
    const result = plan(keys, { tables: facts, request, options: { override: target, residency } });
    expect(summary(result)).toEqual(error);
  });

  test('to an Indian server serves India', () => {
    const options = { override: override('self_hosted', 'lab'), residency: 'india' as const };
    expect(summary(plan(selfHosted, { options }))).toEqual(['self_hosted']);
  });

  test.each<[what: string, target: ProviderName, request: NonNullable<CallParts['request']>]>([
    [
      'the length of a prompt',
      'openai',
      { messages: [{ role: 'user' as const, content: 'x'.repeat(60_000) }] },
    ],
    ['images', 'openai', image('data:image/png;base64,AA')],
    ['tools', 'sarvam', { tools: [{ type: 'function' }] }],
  ])('leaves %s to the vendor, whatever the tables say of the model', (_what, target, request) => {
    const options = { override: override(target) };
    expect(summary(plan(balancedKeys, { tables: facts, request, options }))).toEqual([target]);
  });
});

/** Random worlds: which keys are held and where, how tiers look, what is asked. */
const region = fc.constantFrom(null, 'in', 'India ', 'us-east-1', 'ap-south-1', 'indiana', '');
const arbitraryKey = fc
  .record({
    provider: fc.constantFrom(...providerNames),
    declaredRegion: region,
    label: fc.constantFrom('a', 'b'),
    id: fc.uuid(),
    createdAtMs: fc.nat(),
  })
  .map(({ provider, ...rest }) => heldKey(provider, rest));
const arbitraryTier = fc.uniqueArray(
  fc.record({ provider: fc.constantFrom(...vendorNames), model: fc.constantFrom('x', 'y') }),
  { minLength: 1, maxLength: 8, selector: ({ provider, model }) => provider + model },
);
const arbitraryOverride = fc.option(
  fc.record({
    provider: fc.constantFrom(...providerNames),
    selector: fc.constantFrom(null, 'a', 'b'),
    model: fc.constantFrom('x', 'y'),
  }),
);
const world = fc.record({
  keys: fc.array(arbitraryKey, { maxLength: 8 }),
  balanced: arbitraryTier,
  override: arbitraryOverride,
  heldBack: fc.subarray([...providerNames]),
});

describe('in any world of keys, tables and overrides', () => {
  test('an India request never plans a candidate outside India', () => {
    fc.assert(
      fc.property(world, ({ keys, balanced, override: target, heldBack }) => {
        const tables = testTables({ tiers: { ...tablesInput().tiers, balanced } });
        const result = plan(keys, { tables, options: { residency: 'india', override: target } }, heldBack);
        if (result.kind === 'refused') return;
        expect(result.candidates).not.toHaveLength(0);
        for (const { provider, key, residency } of result.candidates) {
          expect(residency).toBe('india');
          const declaredIndian = ['in', 'india', 'ap-south-1'].includes(
            key.declaredRegion?.trim().toLowerCase() ?? '',
          );
          expect(provider === 'sarvam' || (provider === 'self_hosted' && declaredIndian)).toBe(true);
        }
      }),
    );
  });

  test('a plan holds each held candidate of the tier once, with its own key, and cooling loses none', () => {
    fc.assert(
      fc.property(world, ({ keys, balanced, heldBack }) => {
        const tables = testTables({ tiers: { ...tablesInput().tiers, balanced } });
        const held = new Set(keys.map((key) => key.provider));
        const expected = balanced.filter(({ provider }) => held.has(provider));
        const result = plan(keys, { tables }, heldBack);
        if (result.kind === 'refused') {
          expect(expected).toEqual([]);
          return;
        }
        const names = result.candidates.map(({ provider, model }) => `${provider}:${model}`);
        expect(names.toSorted()).toEqual(expected.map((row) => `${row.provider}:${row.model}`).toSorted());
        for (const { provider, key } of result.candidates) expect(key.provider).toBe(provider);
      }),
    );
  });
});

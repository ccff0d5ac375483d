import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { limitNames } from '../../../src/core/limits/limit-table.ts';
import { compileTables } from '../../../src/core/tables/compile-tables.ts';
import { tierNames } from '../../../src/core/tables/mode.ts';
import { routingTablesSchema } from '../../../src/core/tables/routing-tables.ts';
import type { RoutingTables } from '../../../src/core/tables/tables.ts';
import { validateTables } from '../../../src/core/tables/validate-tables.ts';

const shipped = readFileSync(
  new URL('../../../charts/model-gateway/files/tables.yaml', import.meta.url),
  'utf8',
);

type Shown = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

const candidate = { provider: 'sarvam', model: 'sarvam-105b' };
const short = { tiers: { cheap: [candidate], balanced: [candidate], premium: [candidate] } };

function compile(value: unknown): RoutingTables {
  const validation = validateTables(value);
  if (!validation.ok) throw new Error(JSON.stringify(validation.problems));
  return compileTables(validation.document, 'cafe', 7);
}

function problemsOf(value: unknown): string[] {
  const validation = validateTables(value);
  return validation.ok ? [] : validation.problems.map((problem) => `${problem.path}: ${problem.message}`);
}

describe('the shipped tables', () => {
  const tables = compile(parse(shipped));

  test('are valid, and gw/balanced tries whom the specification names, in its order', () => {
    expect(tables.tier('balanced').map(({ provider }) => provider)).toEqual([
      'openai',
      'sarvam',
      'anthropic',
    ]);
  });

  test('show the defaults that the code has', () => {
    const block = shipped.slice(
      shipped.indexOf('# Everything below is optional and shown with its default.'),
    );
    const lines = block
      .split('\n')
      .slice(2)
      .filter((line) => /^# {1,3}[a-z_]/.test(line));
    const { legacy, ...shown } = parse(lines.map((line) => line.slice(2)).join('\n')) as Shown;
    expect(legacy).toBeDefined();
    const defaults: Readonly<Record<string, unknown>> = routingTablesSchema.parse(short);
    const perUser = new Set(limitNames as readonly string[]);
    for (const [section, fields] of Object.entries(shown)) {
      const others = Object.entries(fields).filter(([name]) => section !== 'limits' || !perUser.has(name));
      expect({ [section]: Object.fromEntries(others) }).toEqual({ [section]: defaults[section] });
    }
    expect(Object.keys(shown)).toEqual(['chat', 'residency', 'timeouts', 'limits', 'cooldown']);
  });

  test('price every candidate, with a source and a date on each row', () => {
    for (const name of tierNames) {
      for (const { provider, model } of tables.tier(name))
        expect(tables.price(provider, model)).not.toBeNull();
    }
    for (const row of tables.document.prices)
      expect(row).toMatchObject({ source: expect.any(String), date: expect.any(String) });
  });

  test.each([
    ['openai', 'gpt-6-luna', { sampling: false, max_tokens_field: 'max_completion_tokens' }],
    ['openai', 'gpt-4.1-mini', { sampling: true, max_tokens_field: 'max_completion_tokens' }],
    ['openai', 'gpt-5.4-mini', { sampling: true }],
    ['openai', 'o4-mini', { stop: false, sampling: false }],
    [
      'anthropic',
      'claude-opus-5-5',
      { sampling: false, forced_tool: false, prefill: false, multiple_choices: false },
    ],
    [
      'anthropic',
      'claude-haiku-4-5',
      { sampling: true, temperature_max: 1, temperature_with_top_p: false, prefill: true },
    ],
    ['anthropic', 'claude-opus-4-6', { sampling: true, prefill: false }],
    ['anthropic', 'claude-haiku-5-5', { forced_tool: true, default_max_tokens: 16384 }],
    [
      'together',
      'openai/gpt-oss-120b',
      { vision: false, stream_usage: false, max_tokens_field: 'max_tokens' },
    ],
    ['sarvam', 'sarvam-105b', { api_version: 'v2', stream_usage: true, context_tokens: 128000 }],
    ['sarvam', 'sarvam-105b-conversations', { api_version: 'v1', stream_usage: false }],
    ['self_hosted', 'anything', { vision: true, sampling: true }],
  ] as const)('know %s %s', (provider, model, facts) => {
    expect(tables.facts(provider, model)).toMatchObject(facts);
  });
});

describe('compiled tables', () => {
  test('a short document is a valid one, with every default filled in', () => {
    const tables = compile(short);
    expect(tables).toMatchObject({ hash: 'cafe', generation: 7, legacy: null });
    expect(tables.indiaRegions.has('ap-south-1')).toBe(true);
    expect(tables.document.timeouts).toEqual({
      attempt_seconds: 120,
      stream_idle_seconds: 60,
      request_seconds: 300,
    });
    expect(tables.price('sarvam', 'sarvam-105b')).toBeNull();
  });

  test('the sunset of the legacy surface is an instant', () => {
    expect(compile({ ...short, legacy: { name: 'old' } }).legacy).toEqual({
      name: 'old',
      sunsetMs: Date.UTC(2026, 6, 23),
    });
    expect(
      compile({ ...short, legacy: { name: 'old', sunset: '2030-01-01T05:30:00+05:30' } }).legacy?.sunsetMs,
    ).toBe(Date.UTC(2030, 0, 1));
  });

  test.each([
    ...[1, 2, 3, 6, 9, 10, 12, 30].map(
      (digits) => `2030-01-01T00:00:00.${'1234567890'.repeat(3).slice(0, digits)}Z`,
    ),
    '2030-01-01T00:00Z',
    '2030-01-01T00:00:60Z',
    '2030-02-29T00:00:00Z',
    '2030-01-01T24:00:00Z',
    '2030-01-01T00:00:00+23:59',
    '2030-01-01T00:00:00+24:00',
    '2030-01-01T00:00:00+0530',
    '2030-01-01T00:00:00-00:00',
    '0000-01-01T00:00:00Z',
    '9999-12-31T23:59:59-23:59',
    '2030-01-01t00:00:00z',
    '2030-01-01 00:00:00Z',
    'Tue, 01 Jan 2030 00:00:00 GMT',
    '2030-01-01',
    '',
  ])('a sunset is refused or is its instant, never another one: %s', (sunset) => {
    const document = { ...short, legacy: { name: 'old', sunset } };
    const problems = problemsOf(document);
    if (problems.length > 0) expect(problems[0]).toContain('legacy.sunset');
    else expect(compile(document).legacy?.sunsetMs).toBe(Math.trunc(Date.parse(sunset)));
  });

  test('regions are compared without case', () => {
    const tables = compile({ ...short, residency: { india_regions: [' AP-South-9 '] } });
    expect(tables.indiaRegions).toEqual(new Set(['ap-south-9']));
  });

  test('a look-up is made once, and what callers name does not pile up', () => {
    const tables = compile(parse(shipped));
    const first = tables.facts('openai', 'gpt-4o');
    expect(tables.facts('openai', 'gpt-4o')).toBe(first);
    for (let index = 0; index < 5000; index += 1) tables.facts('self_hosted', `model-${index}`);
    expect(tables.facts('openai', 'gpt-4o')).toEqual(first);
  });
});

describe('validation', () => {
  test.each<[string, unknown, string[]]>([
    ['no document', null, ['(document): Invalid input: expected object, received null']],
    ['no tiers', {}, ['tiers: Invalid input: expected object, received undefined']],
    ['an unknown tier', { tiers: { ...short.tiers, luxury: [] } }, ['tiers.luxury: unknown field']],
    ['an unknown section', { ...short, extra: 1 }, ['extra: unknown field']],
    [
      'a tier without an India candidate',
      { tiers: { ...short.tiers, cheap: [{ provider: 'openai', model: 'm' }] } },
      [
        'tiers.cheap: needs a candidate with India residency, or X-Gateway-Residency: india can never be served',
      ],
    ],
    [
      'a candidate twice',
      { tiers: { ...short.tiers, cheap: [candidate, candidate] } },
      ['tiers.cheap[1]: repeats row 0 (sarvam:sarvam-105b)'],
    ],
    [
      'a price twice',
      { ...short, prices: [0, 1].map(() => ({ provider: 'openai', model: 'm', input: '1', output: '1' })) },
      ['prices[1]: repeats row 0 (openai:m)'],
    ],
    [
      'facts twice',
      { ...short, models: [0, 1].map(() => ({ provider: 'openai', match: '' })) },
      ['models[1]: repeats row 0 (openai:)'],
    ],
    [
      'limits that are none',
      { ...short, limits: { requests_per_minute: 1.5, streams: null, budget_usd_per_day: 'five' } },
      [
        'limits.requests_per_minute: must be a whole number from 1 to 1000000000',
        'limits.streams: must be a whole number from 1 to 1000000000',
        'limits.budget_usd_per_day: must be dollars above 0 such as "2.50", with at most six decimal places',
      ],
    ],
    [
      'a pause that begins longer than it may get',
      { ...short, cooldown: { first_seconds: 61 } },
      ['cooldown.first_seconds: is longer than longest_seconds'],
    ],
  ])('%s is a problem with its place', (_name, value, problems) => {
    expect(problemsOf(value)).toEqual(problems);
  });

  test.each([
    [
      'tiers.cheap[0].provider',
      { tiers: { ...short.tiers, cheap: [{ provider: 'self_hosted', model: 'm' }] } },
    ],
    ['tiers.cheap', { tiers: { ...short.tiers, cheap: [] } }],
    ['prices[0].input', { ...short, prices: [{ provider: 'openai', model: 'm', input: 1, output: '1' }] }],
    [
      'models[0].max_tokens_field',
      { ...short, models: [{ provider: 'openai', match: '', max_tokens_field: 'x' }] },
    ],
    ['timeouts.attempt_seconds', { ...short, timeouts: { attempt_seconds: 0 } }],
    ['legacy.sunset', { ...short, legacy: { name: 'old', sunset: 'soon' } }],
  ])('names %s', (path, value) => {
    expect(problemsOf(value).map((problem) => problem.split(': ')[0])).toEqual([path]);
  });

  test('many problems are cut to the first twenty', () => {
    const prices = Array.from({ length: 500 }, () => ({
      provider: 'nobody',
      model: '',
      input: 1,
      output: 2,
    }));
    expect(problemsOf({ ...short, prices })).toHaveLength(20);
  });
});

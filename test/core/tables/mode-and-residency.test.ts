import { describe, expect, test } from 'vitest';
import type { ProviderName } from '../../../src/core/provider-name.ts';
import { residencyAllows, residencyOf } from '../../../src/core/request/residency.ts';
import { modes, parseMode } from '../../../src/core/tables/mode.ts';
import { testTables } from '../../chat/story.ts';

describe('a mode', () => {
  test.each(modes)('%s is read', (mode) => {
    expect(parseMode(mode, null)).toEqual({ mode, tier: mode.slice(3), legacy: false });
  });

  test('with the former prefix is read as its new name while that is accepted', () => {
    expect(parseMode('oldname/cheap', 'oldname')).toEqual({ mode: 'gw/cheap', tier: 'cheap', legacy: true });
    expect(parseMode('gw/cheap', 'oldname')?.legacy).toBe(false);
    expect(parseMode('oldname/cheap', null)).toBeNull();
  });

  test.each([
    '',
    'gw',
    'gw/',
    'cheap',
    '/cheap',
    'gw/Cheap',
    'GW/cheap',
    'gw/cheap/',
    'gw/cheap ',
    ' gw/cheap',
    'gw//cheap',
    'gw/override',
    'gw/__proto__',
    'gpt-4o',
    'openai:gpt-4o',
    'null/cheap',
  ])('is not %j', (text) => {
    expect(parseMode(text, null)).toBeNull();
    expect(parseMode(text, 'oldname')).toBeNull();
  });
});

describe('the residency of a key', () => {
  const regions = testTables({ residency: { india_regions: ['IN', 'ap-south-1'] } }).indiaRegions;

  test.each<[ProviderName, string | null, string]>([
    ['openai', null, 'global'],
    ['anthropic', null, 'global'],
    ['together', null, 'global'],
    ['sarvam', null, 'india'],
    ['openai', 'in', 'global'],
    ['sarvam', 'us', 'india'],
    ['self_hosted', 'in', 'india'],
    ['self_hosted', ' AP-South-1 ', 'india'],
    ['self_hosted', 'india', 'global'],
    ['self_hosted', 'ap-south-12', 'global'],
    ['self_hosted', '', 'global'],
    ['self_hosted', null, 'global'],
  ])('of %s in %j is %s', (provider, declared, expected) => {
    expect(residencyOf(provider, declared, regions)).toBe(expected);
  });

  test.each([
    [null, 'global', true],
    [null, 'india', true],
    ['india', 'india', true],
    ['india', 'global', false],
  ] as const)('asked %j, found %s: allowed is %s', (requested, actual, allowed) => {
    expect(residencyAllows(requested, actual)).toBe(allowed);
  });
});

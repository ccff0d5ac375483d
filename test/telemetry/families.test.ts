/** The names, labels and texts of the metric families against the conventions. */
import { describe, expect, test } from 'vitest';
import { streamEndings } from '../../src/chat/telemetry-port.ts';
import { keyVerdicts } from '../../src/core/account/key-verdict.ts';
import { breakerStates } from '../../src/core/breaker-state.ts';
import { refusingLimits } from '../../src/core/limits/limit-table.ts';
import { isPriced, providerNames } from '../../src/core/provider-name.ts';
import { cacheResults } from '../../src/core/settled-request.ts';
import { authFailures, legacySurfaces, shortages } from '../../src/http/http-telemetry.ts';
import { storeResults } from '../../src/limits/user-minutes.ts';
import { unpricedReasons } from '../../src/telemetry/attempt-metrics.ts';
import { countedFamilies } from '../../src/telemetry/families/counted-families.ts';
import { metricFamilies } from '../../src/telemetry/families/families.ts';
import type { ReadFamily } from '../../src/telemetry/families/family.ts';
import { readFamilies } from '../../src/telemetry/families/read-families.ts';

interface Listed {
  readonly kind: string;
  readonly help: string;
  readonly labels: readonly string[];
}
const families = Object.entries<Listed | ReadFamily<'gauge', []>>(metricFamilies);

describe.each(families)('%s', (name, { kind, help, labels }) => {
  test('is named as the conventions want it', () => {
    expect(name).toMatch(/^(gw|gen_ai|http)_[a-z_]+$/);
    expect(name.endsWith('_total')).toBe(kind.endsWith('counter'));
    expect(name).not.toMatch(/_(ms|milliseconds|kb|minutes)(_|$)/);
    for (const label of labels) expect(label).toMatch(/^[a-z_]+$/);
    expect(new Set(labels).size).toBe(labels.length);
  });

  test('says in a sentence what it is', () => {
    expect(help).toMatch(/^[A-Z0-9].{8,}\.$/);
  });
});

test('none is both counted here and read from others', () => {
  expect(Object.keys(countedFamilies).filter((name) => name in readFamilies)).toEqual([]);
});

test.each<[name: keyof typeof metricFamilies, values: readonly string[]]>([
  ['gw_auth_failures_total', authFailures],
  ['gw_cache_requests_total', cacheResults],
  ['gw_key_checks_total', keyVerdicts],
  ['gw_legacy_use_total', legacySurfaces],
  ['gw_limit_refusals_total', refusingLimits],
  ['gw_limit_store_total', storeResults],
  ['gw_provider_circuit_transitions_total', breakerStates],
  ['gw_shed_requests_total', shortages],
  ['gw_streams_total', streamEndings],
  ['gw_unpriced_responses_total', [...unpricedReasons, ...providerNames.filter((name) => !isPriced(name))]],
])('%s says every value of its closed list', (name, values) => {
  const words = new Set(metricFamilies[name].help.match(/\w+/g));
  expect(values.filter((value) => !words.has(value))).toEqual([]);
});

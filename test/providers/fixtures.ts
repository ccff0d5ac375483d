import { existsSync, readFileSync } from 'node:fs';
import { parse } from 'yaml';
import type { ProviderName } from '../../src/core/provider-name.ts';
import { providerNames } from '../../src/core/provider-name.ts';
import { compileTables } from '../../src/core/tables/compile-tables.ts';
import type { ModelFacts } from '../../src/core/tables/model-facts.ts';
import type { RoutingTables } from '../../src/core/tables/tables.ts';
import { validateTables } from '../../src/core/tables/validate-tables.ts';
import type { StreamContext } from '../../src/providers/provider.ts';

const root = new URL('../..', import.meta.url);

function readYaml(path: string): unknown {
  return parse(readFileSync(new URL(path, root), 'utf8'), { merge: true });
}

function loadShippedTables(): RoutingTables {
  const validation = validateTables(readYaml('charts/model-gateway/files/tables.yaml'));
  if (!validation.ok) throw new Error(JSON.stringify(validation.problems));
  return compileTables(validation.document, '0123456789abcdef', 1);
}

/** The tables that the chart ships: fixtures are judged by the facts and prices users get. */
export const shippedTables = loadShippedTables();

/** Models of a provider, one for each set of facts that the shipped tables tell apart. */
export function differingModels(provider: ProviderName): string[] {
  const rows = shippedTables.document.models.filter((row) => row.provider === provider);
  const models = ['unknown', ...rows.map(({ match }) => match)];
  const alike = Map.groupBy(models, (model) => JSON.stringify(shippedTables.facts(provider, model)));
  return [...alike.values()].flatMap(([first = []]) => first);
}

export type FixtureKind = 'requests' | 'answers' | 'streams' | 'errors' | 'money';

export interface NamedCase {
  readonly name: string;
  readonly provider: ProviderName;
}

/** All cases of one kind over all providers: `test/fixtures/<provider>/<kind>.yaml`, a list each. */
export function loadCases<Case extends object>(kind: FixtureKind): (Case & NamedCase)[] {
  return providerNames.flatMap((provider) => {
    const path = `test/fixtures/${provider}/${kind}.yaml`;
    if (!existsSync(new URL(path, root))) return [];
    return (readYaml(path) as (Case & { name: string })[]).map((entry) => ({ ...entry, provider }));
  });
}

export interface ContextOptions {
  readonly model?: string;
  readonly facts?: Partial<ModelFacts>;
  readonly form?: string;
  readonly maxEventBytes?: number;
  readonly choices?: number;
}

export function contextFor(provider: ProviderName, options: ContextOptions): StreamContext {
  const model = options.model ?? 'some-model';
  return {
    model,
    facts: { ...shippedTables.facts(provider, model), ...options.facts },
    form: options.form ?? null,
    fallbackId: 'chatcmpl-0fa11bac',
    createdSeconds: 1_790_000_000,
    maxEventBytes: options.maxEventBytes ?? 1024 * 1024,
    choices: options.choices ?? 1,
  };
}

import type { TablesInput } from '../harness/gateway/tables.ts';
import { tables } from '../harness/gateway/tables.ts';

/** The way of a request to a vendor: by mode, or by name. */
export interface Route {
  readonly vendor: 'openai' | 'together' | 'sarvam' | 'anthropic' | 'self_hosted';
  readonly name: string;
  readonly byMode: boolean;
  readonly model: string;
  readonly headers: Readonly<Record<string, string>>;
}

function byMode(vendor: Route['vendor'], model: string, headers: Route['headers'] = {}): Route {
  const name = Object.keys(headers).length === 0 ? model : `${model}, residency india`;
  return { vendor, name, byMode: true, model, headers };
}

function byName(vendor: Route['vendor'], model: string): Route {
  const target = `${vendor}:${model}`;
  const headers = { 'X-Gateway-Override-Model': target };
  return { vendor, name: target, byMode: false, model: 'gw/balanced', headers };
}

/** self_hosted is reached by override only (SPEC 4.2). */
export const routes: readonly Route[] = [
  byMode('openai', 'gw/balanced'),
  byName('openai', 'gpt-test'),
  byMode('together', 'gw/cheap'),
  byName('together', 'tog/test'),
  byMode('sarvam', 'gw/balanced', { 'X-Gateway-Residency': 'india' }),
  byName('sarvam', 'sarvam-test'),
  byName('self_hosted', 'local-test'),
  byMode('anthropic', 'gw/premium'),
  byName('anthropic', 'claude-test'),
];

/** The usual tables, but that each commercial vendor is the first of some mode. */
export function matrixTables(): TablesInput {
  const usual = tables();
  const cheap = [...usual.tiers.cheap].sort(
    (a, b) => Number(b.provider === 'together') - Number(a.provider === 'together'),
  );
  return { ...usual, tiers: { ...usual.tiers, cheap } };
}

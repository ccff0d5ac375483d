import { metric } from '../measure/fault-metrics.ts';
import type { Completion } from '../vendors/wire-types.ts';
import type { Asking } from './asking.ts';
import { afterReload } from './requests.ts';
import { untilMetric } from './until-metrics.ts';
import type { SoakWorld } from './world.ts';
import { soakTables } from './world.ts';

/** Micro-dollars per token of what users pay for, by version: each is another answer's cost. */
const versions = [
  { input: '0.10', output: '0.50' },
  { input: '0.40', output: '0.90' },
  { input: '0.20', output: '0.70' },
] as const;

/** Resolves when the gateway has taken tables with other prices, and an answer has been paid by them. */
export type Reload = () => Promise<void>;

/** Edits the tables file each time it is called. What is not as it should be is told to `asking.wrong`. */
export function reloads(world: SoakWorld, asking: Asking): Reload {
  const { gateway, users } = world;
  const key = users[0]?.key ?? '';
  let count = 0;
  let versionBefore: unknown;
  return async () => {
    count += 1;
    const price = versions[count % versions.length] ?? versions[0];
    const loadsBefore = await metric(gateway, 'gw_config_generation');
    await gateway.writeTables(soakTables(price));
    await untilMetric(gateway, 'gw_config_generation', (loads) => loads > loadsBefore);
    const { status, text, headers } = await asking.ask(afterReload, key);
    const version = headers['x-gateway-tables-version'];
    if (status !== 200) return;
    const { usage, gateway: made } = JSON.parse(text) as Completion;
    const micros = usage.prompt_tokens * Number(price.input) + usage.completion_tokens * Number(price.output);
    const expected = (Math.round(micros) / 1e6).toFixed(6);
    if (version === versionBefore)
      asking.wrong(`the tables' version stayed ${String(version)} after a reload`);
    if (made.cost_usd !== expected) asking.wrong(`after a reload ${made.cost_usd} was paid, not ${expected}`);
    versionBefore = version;
  };
}

import { httpClient } from '../gateway/http-client.ts';
import type { GatewayUnderTest } from '../gateway/start-gateway.ts';
import { eventually } from './eventually.ts';

/** The sum of a metric's series now, of those with all these labels (`name="value"`); 0 when it has none. */
export async function metric(
  gateway: Pick<GatewayUnderTest, 'adminUrl'>,
  name: string,
  labels: readonly string[] = [],
): Promise<number> {
  const { text } = await httpClient(gateway.adminUrl).get('/metrics');
  const series = new RegExp(`^${name}(\\{.*\\})? (\\S+)$`, 'gm');
  return [...text.matchAll(series)]
    .filter(([, has = '']) => labels.every((label) => has.includes(label)))
    .reduce((sum, [, , value]) => sum + Number(value), 0);
}

/** Resolves when every settled row lies in Postgres. */
export async function untilRowsStored(gateway: GatewayUnderTest, limitMs?: number): Promise<void> {
  await eventually(async () => {
    const waiting = await metric(gateway, 'gw_log_queue_depth');
    const spooled = await metric(gateway, 'gw_log_spool_bytes');
    return waiting + spooled === 0 || undefined;
  }, limitMs);
}

/** The answer of a probe's path. */
export async function probe(gateway: Pick<GatewayUnderTest, 'adminUrl'>, path: string): Promise<number> {
  return (await httpClient(gateway.adminUrl).get(path)).status;
}

/** Resolves when /readyz answers `status`. */
export async function untilReadyIs(
  gateway: Pick<GatewayUnderTest, 'adminUrl'>,
  status: number,
): Promise<void> {
  await eventually(async () => (await probe(gateway, '/readyz')) === status || undefined);
}

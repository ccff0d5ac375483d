import type { GatewayUnderTest } from '../gateway/start-gateway.ts';
import { eventually } from '../measure/eventually.ts';
import { metric } from '../measure/fault-metrics.ts';

const limitMs = 60_000;
/** A page of metrics costs the gateway some milliseconds, which the latency of others must not be made of. */
const restMs = 250;

/** Resolves when the metric of that name is as wanted. */
export function untilMetric(
  gateway: Pick<GatewayUnderTest, 'adminUrl'>,
  name: string,
  isSo: (value: number) => boolean,
): Promise<true> {
  return eventually(async () => isSo(await metric(gateway, name)) || undefined, limitMs, restMs);
}

import OpenAI from 'openai';
import type { User } from '../harness/gateway/register.ts';
import { registerWithKeys } from '../harness/gateway/register.ts';
import type { GatewayUnderTest } from '../harness/gateway/start-gateway.ts';
import { startGateway } from '../harness/gateway/start-gateway.ts';
import type { TablesInput } from '../harness/gateway/tables.ts';
import { tables } from '../harness/gateway/tables.ts';
import { bodyLimitBytes } from './preset.ts';
import type { RunningProxy } from './proxy.ts';

/** A gateway, a proxy before it, and the official client of a user who knows only the proxy. */
export interface Rig {
  readonly gateway: GatewayUnderTest;
  readonly user: User;
  readonly proxy: RunningProxy;
  readonly openai: OpenAI;
  stop(): Promise<void>;
}

export type StartProxyBefore = (ports: readonly number[]) => Promise<RunningProxy>;

export async function startRig(
  startProxy: StartProxyBefore,
  changes: Partial<TablesInput> = {},
): Promise<Rig> {
  const gateway = await startGateway({
    tables: tables(changes),
    env: { GW_BODY_LIMIT_BYTES: String(bodyLimitBytes), GW_TRUSTED_PROXY_HOPS: '1' },
  });
  const user = await registerWithKeys(gateway.url);
  const proxy = await startProxy([portOf(gateway)]);
  const stop = async () => {
    await proxy.stop();
    await gateway.stop();
  };
  return { gateway, user, proxy, openai: clientOf(proxy, user.key), stop };
}

/** The stock client, without its own repetitions. */
export function clientOf(proxy: RunningProxy, apiKey = 'any'): OpenAI {
  return new OpenAI({ apiKey, baseURL: `${proxy.url}/v1`, maxRetries: 0 });
}

export function portOf(gateway: GatewayUnderTest): number {
  return Number(new URL(gateway.url).port);
}

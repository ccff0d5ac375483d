import { beforeAll } from 'vitest';
import { chat, chatOk, streamed } from '../harness/gateway/chat.ts';
import { httpClient } from '../harness/gateway/http-client.ts';
import type { User } from '../harness/gateway/register.ts';
import { addKey } from '../harness/gateway/register.ts';
import type { GatewayUnderTest } from '../harness/gateway/start-gateway.ts';
import { sealingKeys } from '../harness/gateway/start-gateway.ts';
import { useGateway, useUser } from '../harness/gateway/use-gateway.ts';
import type { VendorPack } from '../harness/vendors/vendor-pack.ts';
import { answer, failure, tokensThen } from '../harness/vendors/vendor-plans.ts';
import type { Script } from '../harness/vendors/vendor-reply.ts';
import type { Exposition } from './exposition.ts';
import { readExposition } from './exposition.ts';

/** The metrics of a gateway as they are now. */
export async function scrape(gateway: Pick<GatewayUnderTest, 'adminUrl'>): Promise<Exposition> {
  return readExposition((await httpClient(gateway.adminUrl).get('/metrics')).text);
}

/** A stream that takes long enough for a speed to be told. */
const slowStream: Script = (request) => {
  const reply = answer()(request);
  const [first = '', second = '', ...rest] = [...reply.body];
  return { ...reply, body: [first, second, { waitMs: 80 }, ...rest] };
};

const adminToken = 'an-admin-token-of-sufficient-length';

/** A gateway for the tests of a file that has done everything that makes a metric: all families have series. */
export function useExercisedGateway(env: () => Readonly<Record<string, string>> = () => ({})): {
  readonly gateway: GatewayUnderTest;
  readonly user: User;
} {
  const rotation = { GW_SEALING_KEYS: `${sealingKeys('k2')},${sealingKeys('k1')}` };
  const gateway = useGateway(() => ({ env: { ...rotation, GW_ADMIN_TOKEN: adminToken, ...env() } }));
  const user = useUser(gateway);
  beforeAll(async () => {
    await exercise(gateway.vendors, user);
    await httpClient(gateway.adminUrl, adminToken).get('/admin/users');
  });
  return { gateway, user };
}

async function exercise(vendors: VendorPack, user: User): Promise<void> {
  await addKey(user, {
    provider: 'self_hosted',
    api_key: 'x',
    base_url: vendors.together.url,
    declared_region: 'eu',
  });
  const cached = { 'x-gateway-cache': 'true' };
  await chatOk(user.client, {}, cached);
  await chatOk(user.client, {}, cached);
  vendors.openai.script(slowStream);
  await streamed(user.client);
  vendors.openai.script(failure(429, { 'retry-after': '3' }));
  await chatOk(user.client);
  vendors.openai.script(tokensThen(1, 'fin'));
  const cut = await user.client.stream('/v1/chat/completions', {
    model: 'gw/balanced',
    stream: true,
    messages: [{ role: 'user', content: 'x' }],
  });
  await cut.text();
  await chatOk(user.client, {}, { 'x-gateway-override-model': 'self_hosted:mine' });
  await chatOk(user.client, {}, { 'x-gateway-override-model': 'openai:unknown-to-the-tables' });
  vendors.always(failure(500));
  await chat(user.client);
}

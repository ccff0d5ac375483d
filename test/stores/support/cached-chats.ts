import { expect } from 'vitest';
import type { User } from '../../harness/gateway/register.ts';
import type { GatewayUnderTest } from '../../harness/gateway/start-gateway.ts';
import { sendChat } from '../../harness/ledgers/fault-load.ts';
import { eventually } from '../../harness/measure/eventually.ts';
import type { Completion } from '../../harness/vendors/wire-types.ts';

/** Whether a chat that asks for the cache, and must be served, was a hit. */
export async function isHit(gateway: GatewayUnderTest, user: User, question: string): Promise<boolean> {
  const body = { messages: [{ role: 'user', content: question }] };
  const sent = await sendChat(gateway.url, user, { headers: { 'x-gateway-cache': 'true' }, body });
  expect(sent.status, sent.text).toBe(200);
  return (JSON.parse(sent.text) as Completion).gateway.cache_hit;
}

/** Resolves when a question that was asked before is answered by the cache. */
export async function untilHit(gateway: GatewayUnderTest, user: User): Promise<void> {
  const question = crypto.randomUUID();
  await eventually(async () => (await isHit(gateway, user, question)) || undefined);
}

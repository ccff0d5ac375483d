/** Budgets of users: soft, over replicas that share only Postgres. */
import { describe, expect, test } from 'vitest';
import { chat, chatOk, logRowsOnceThere } from '../harness/gateway/chat.ts';
import { expectError } from '../harness/gateway/expect-error.ts';
import { httpClient } from '../harness/gateway/http-client.ts';
import { registerWithKeys } from '../harness/gateway/register.ts';
import { setLimits } from '../harness/gateway/set-limits.ts';
import { useGateway } from '../harness/gateway/use-gateway.ts';
import { useReplica } from '../harness/gateway/use-replica.ts';
import { eventually } from '../harness/measure/eventually.ts';
import { metric, untilRowsStored } from '../harness/measure/fault-metrics.ts';

const gateway = useGateway();
const other = useReplica(gateway);

describe.each([
  ['day', 'budget_usd_per_day', 'daily_budget_exceeded'],
  ['month', 'budget_usd_per_month', 'monthly_budget_exceeded'],
] as const)('a budget of the %s', (period, name, code) => {
  test('lets a user in until it is spent, then neither replica does', async () => {
    const user = await registerWithKeys(gateway.url, ['openai']);
    await setLimits(gateway, user, { [name]: '0.000001' });
    // A replica that has not heard of the limit yet counts nothing towards it.
    const spent = await eventually(async () => {
      await chatOk(user.client);
      const response = await chat(user.client);
      return response.status === 429 ? response : undefined;
    });
    const asked = gateway.vendors.openai.ledger.length;
    expectError(spent, { status: 429, type: 'rate_limit_error', code, param: null });
    expect(spent.headers['x-should-retry']).toBe('false');
    const seconds = Number(spent.headers['retry-after']);
    expect(seconds).toBeGreaterThan(0);
    expect(seconds).toBeLessThanOrEqual(86_400);
    await logRowsOnceThere(user.client, 1);
    await untilRowsStored(gateway);
    const elsewhere = await chat(httpClient(other.url, user.key));
    expectError(elsewhere, { status: 429, type: 'rate_limit_error', code });
    expect(gateway.vendors.openai.ledger).toHaveLength(asked);
    for (const one of [gateway, other]) {
      const told = await eventually(async () => {
        const lines = one
          .logs()
          .filter(({ audit, user_id }) => audit === 'budget_reached' && user_id === user.id);
        return lines.length === 2 ? lines : undefined;
      });
      expect(told).toMatchObject([80, 100].map((share_percent) => ({ period, share_percent })));
      const labels = [`period="${period}"`, 'share="100"'];
      expect(await metric(one, 'gw_budget_users', labels)).toBe(1);
      expect(await metric(one, 'gw_limit_refusals_total', [`limit="budget_${period}"`])).toBeGreaterThan(0);
    }
    await setLimits(gateway, user, { [name]: '1000' });
    await eventually(async () => (await chat(user.client)).status === 200 || undefined);
    expect(await metric(gateway, 'gw_budget_users', [`period="${period}"`])).toBe(0);
  });
});

test('a budget holds for a model that the tables have no price for, whose answers cost nothing', async () => {
  const user = await registerWithKeys(gateway.url, ['openai']);
  await setLimits(gateway, user, { budget_usd_per_day: '0.000001' });
  const override = { 'x-gateway-override-model': 'openai:of-tomorrow' };
  // A replica that has not heard of the limit yet counts nothing towards it.
  const refused = await eventually(async () => {
    const response = await chat(user.client, {}, override);
    return response.status === 429 ? response : undefined;
  });
  expectError(refused, { status: 429, type: 'rate_limit_error', code: 'daily_budget_exceeded', param: null });
  for (const row of await logRowsOnceThere(user.client, 1)) {
    expect(row).toMatchObject({ status: 'success', cost_usd: '0.000000' });
  }
});

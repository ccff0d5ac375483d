/** Limits hold for clients that leave before the vendor has said what their answers used up (docs/operations.md). */
import { expect, test } from 'vitest';
import { chatBody, chatPath, logRowsOnceThere } from '../harness/gateway/chat.ts';
import { registerWithKeys } from '../harness/gateway/register.ts';
import { setLimits } from '../harness/gateway/set-limits.ts';
import { useGateway } from '../harness/gateway/use-gateway.ts';
import { eventually } from '../harness/measure/eventually.ts';
import { tokensThen } from '../harness/vendors/vendor-plans.ts';

const gateway = useGateway();
const tokens = 40;

test.each([
  ['tokens per minute', { tokens_per_minute: 30 }, 'rate_limit_exceeded'],
  ['a budget of the day', { budget_usd_per_day: '0.000001' }, 'daily_budget_exceeded'],
  ['a budget of the month', { budget_usd_per_month: '0.000001' }, 'monthly_budget_exceeded'],
])('who drops stream after stream is held by %s; rows say what the vendor said', async (_, limits, code) => {
  gateway.vendors.openai.always(tokensThen(tokens, 'hang'));
  const user = await registerWithKeys(gateway.url, ['openai']);
  await setLimits(gateway, user, limits);
  // A replica that has not heard of the limit yet counts nothing towards it.
  const refusal = await eventually(async () => {
    const reader = await user.client.stream(chatPath, chatBody({ stream: true }));
    if (reader.status === 429) return JSON.parse(await reader.text());
    for (let seen = 0; seen < tokens; ) {
      const data = await reader.next();
      if (data === null) throw new Error('the stream ended by itself');
      if (data.includes('"content":"t')) seen += 1;
    }
    reader.destroy();
    return undefined;
  });
  expect(refusal).toMatchObject({ error: { type: 'rate_limit_error', code } });
  for (const row of await logRowsOnceThere(user.client, 1)) {
    expect(row).toMatchObject({ status: 'client_closed', output_tokens: 0, cost_usd: '0.000000' });
  }
});

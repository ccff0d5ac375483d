/** Limits hold for clients that leave before the vendor has said what their answers used up (docs/operations.md). */
import { describe, expect, test } from 'vitest';
import { chat, chatBody, chatPath, logRowsOnceThere } from '../harness/gateway/chat.ts';
import type { User } from '../harness/gateway/register.ts';
import { registerWithKeys } from '../harness/gateway/register.ts';
import { setLimits } from '../harness/gateway/set-limits.ts';
import { useGateway } from '../harness/gateway/use-gateway.ts';
import { eventually } from '../harness/measure/eventually.ts';
import { hang, tokensThen } from '../harness/vendors/vendor-plans.ts';

const gateway = useGateway();
const tokens = 40;

const held = [
  ['tokens per minute', { tokens_per_minute: 30 }, 'rate_limit_exceeded'],
  ['a budget of the day', { budget_usd_per_day: '0.000001' }, 'daily_budget_exceeded'],
  ['a budget of the month', { budget_usd_per_month: '0.000001' }, 'monthly_budget_exceeded'],
] as const;

test.each(held)(
  'who drops stream after stream is held by %s; rows say what the vendor said',
  async (_, limits, code) => {
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
  },
);

const prompt = { messages: [{ role: 'user', content: 'word '.repeat(100) }] };

/** Leaves as soon as the vendor has the prompt; the status of what was answered before, null of nothing. */
async function leave({ client }: User): Promise<number | null> {
  const leaving = new AbortController();
  gateway.vendors.openai.always((request) => {
    leaving.abort();
    return hang(request);
  });
  const options = { body: chatBody(prompt), signal: leaving.signal };
  try {
    return (await client.request('POST', chatPath, options)).status;
  } catch (cause) {
    if (!leaving.signal.aborted) throw cause;
    return null;
  }
}

const waitBriefly = async ({ client }: User): Promise<number> =>
  (await chat(client, prompt, { 'x-gateway-timeout': '1' })).status;

describe.each<[string, (user: User) => Promise<number | null>]>([
  ['by leaving', leave],
  ['by a limit of a second', waitBriefly],
])('who gives up prompt after prompt before an answer comes, %s,', (_how, giveUp) => {
  test.each(held)('is held by %s', async (_, limits) => {
    gateway.vendors.openai.always(hang);
    const user = await registerWithKeys(gateway.url, ['openai']);
    await setLimits(gateway, user, limits);
    await eventually(async () => (await giveUp(user)) === 429 || undefined);
    for (const row of await logRowsOnceThere(user.client, 1)) {
      expect(row).toMatchObject({ input_tokens: 0, cost_usd: '0.000000' });
    }
  });
});

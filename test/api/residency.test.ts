/** SPEC 4.5, routing rule 3, as a property: whatever else a request asks for, India means India. */
import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { chatBody, chatPath, logRowsOnceThere } from '../harness/gateway/chat.ts';
import { useGateway, useUser } from '../harness/gateway/use-gateway.ts';
import {
  answer,
  failure,
  htmlOk,
  reset,
  roleThenError,
  tokensThen,
} from '../harness/vendors/vendor-plans.ts';

const gateway = useGateway();
const user = useUser(gateway);

const plans = {
  answer: answer(),
  'too many': failure(429),
  broken: failure(500),
  refused: failure(400),
  reset,
  html: htmlOk,
  'role, then error': roleThenError,
  'cut stream': tokensThen(2, 'fin'),
};
type PlanName = keyof typeof plans;
const planName = fc.constantFrom(...(Object.keys(plans) as PlanName[]));

const requests = fc.record({
  india: fc.boolean(),
  model: fc.constantFrom('gw/cheap', 'gw/balanced', 'gw/premium'),
  override: fc.option(
    fc.constantFrom('openai:gpt-test', 'anthropic:claude-test', 'together:tog/test', 'sarvam:sarvam-test'),
    { freq: 3, nil: undefined },
  ),
  stream: fc.boolean(),
  cache: fc.boolean(),
  /** Few questions, so that cached answers and requests in flight are shared. */
  question: fc.constantFrom('one', 'two', 'three'),
  sarvam: planName,
  others: planName,
});

test('no byte of an India request reaches a provider outside India, and every answer says where it came from', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(requests, { minLength: 5, maxLength: 15 }), async (batch) => {
      gateway.vendors.clear();
      const { openai, anthropic, together, sarvam } = gateway.vendors;
      const outside = [openai, anthropic, together];
      const run = randomUUID();
      await Promise.all(
        batch.map(async ({ india, model, override, stream, cache, question, ...plan }) => {
          const marker = `${india ? 'india' : 'anywhere'} ${question} ${run}`;
          for (const vendor of outside) vendor.when(marker, plans[plan.others]);
          sarvam.when(marker, plans[plan.sarvam]);
          const headers = {
            ...(india ? { 'x-gateway-residency': 'india' } : {}),
            ...(override === undefined ? {} : { 'x-gateway-override-model': override }),
            ...(cache ? { 'x-gateway-cache': 'true' } : {}),
          };
          const body = chatBody({ model, stream, messages: [{ role: 'user', content: marker }] });
          const response = await user.client.post(chatPath, body, headers);
          expect(response.text).not.toContain('Internal server error');
          if (!india) return;
          if (override !== undefined && !override.startsWith('sarvam:')) {
            expect(response.status).toBe(422);
            expect(response.json<object>()).toMatchObject({ error: { type: 'residency_error' } });
          }
          const actual = [...response.text.matchAll(/"residency_actual":"(\w+)"/g)].map((match) => match[1]);
          for (const residency of actual) expect(['india', 'cache']).toContain(residency);
        }),
      );
      for (const vendor of outside)
        for (const call of vendor.ledger) expect(call.bodyText).not.toContain(`india`);
    }),
    { numRuns: 25 },
  );
  const rows = await logRowsOnceThere(user.client, 100);
  for (const row of rows.filter(({ residency_requested: requested }) => requested === 'india'))
    expect(['india', 'cache']).toContain(row.residency_actual);
});

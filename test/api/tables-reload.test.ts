/** The tables are data: an edit is taken over while serving, a bad one is not. */
import { describe, expect, test } from 'vitest';
import { chatOk } from '../harness/gateway/chat.ts';
import { httpClient } from '../harness/gateway/http-client.ts';
import { tables } from '../harness/gateway/tables.ts';
import { useGateway, useUser } from '../harness/gateway/use-gateway.ts';
import { eventually } from '../harness/measure/eventually.ts';

const gateway = useGateway();
const user = useUser(gateway);

/** The test tables with another first candidate of `gw/balanced`. */
function balancedBy(provider: 'openai' | 'anthropic' | 'together', model: string) {
  const base = tables();
  return tables({
    tiers: {
      ...base.tiers,
      balanced: [
        { provider, model },
        { provider: 'sarvam', model: 'sarvam-test' },
      ],
    },
  });
}

const servedBy = async (model: string) =>
  eventually(async () => ((await chatOk(user.client)).gateway.model === model ? true : undefined), 10_000);

describe('an edit of the tables', () => {
  test('is taken over without a restart and without a failed request', async () => {
    await servedBy('gpt-test');
    await gateway.writeTables(balancedBy('together', 'tog/new'));
    await servedBy('tog/new');
    await gateway.writeTables(balancedBy('anthropic', 'claude-new'));
    await servedBy('claude-new');
  });

  const bad: [name: string, document: string | object, message: RegExp][] = [
    ['no YAML', 'tiers: [', /./],
    ['empty', '', /./],
    [
      'a tier short',
      { tiers: { cheap: tables().tiers.cheap, balanced: tables().tiers.balanced } },
      /premium/,
    ],
    [
      'an unknown provider',
      { tiers: { ...tables().tiers, cheap: [{ provider: 'x', model: 'y' }] } },
      /cheap/,
    ],
    ['an unknown field', { colour: 'red' }, /colour/],
    [
      'a price that is a float',
      { prices: [{ provider: 'openai', model: 'm', input: 0.1, output: '1' }] },
      /price/,
    ],
    ['a negative price', { prices: [{ provider: 'openai', model: 'm', input: '-1', output: '1' }] }, /price/],
    [
      'no India candidate in a tier',
      { tiers: { ...tables().tiers, cheap: [{ provider: 'openai', model: 'm' }] } },
      /cheap.*India/,
    ],
  ];

  test.each(bad)(
    'with %s leaves the last good one in force, and says so in the log',
    async (_name, document, pattern) => {
      await gateway.writeTables(balancedBy('together', 'tog/good'));
      await servedBy('tog/good');
      const before = gateway.logs().length;
      await gateway.writeTables(
        typeof document === 'string' ? document : JSON.stringify({ ...tables(), ...document }),
      );
      await eventually(async () => {
        const loud = gateway
          .logs()
          .slice(before)
          .filter((line) => ['warn', 'error'].includes(String(line['level'])));
        return loud.some((line) => pattern.test(JSON.stringify(line))) ? true : undefined;
      });
      expect((await chatOk(user.client)).gateway.model).toBe('tog/good');
      expect((await httpClient(gateway.adminUrl).get('/readyz')).status).toBe(200);
    },
  );

  test('that lets more through is in the API description on both ports', async () => {
    await gateway.writeTables(
      JSON.stringify(tables({ chat: { developer_role: true, passthrough_fields: ['verbosity'] } })),
    );
    for (const client of [httpClient(gateway.adminUrl), user.client])
      await eventually(async () => {
        const { text } = await client.get('/openapi.json');
        return (text.includes('"developer"') && text.includes('"verbosity"')) || undefined;
      });
  });

  test('to a valid one is taken over after a bad one', async () => {
    await gateway.writeTables('tiers: [');
    await gateway.writeTables(balancedBy('anthropic', 'claude-repaired'));
    await servedBy('claude-repaired');
  });
});

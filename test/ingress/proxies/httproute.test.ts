import { describe, expect, test } from 'vitest';
import { runHelmTest } from '../../chart/helm-test-script.ts';
import { useGateway } from '../../harness/gateway/use-gateway.ts';
import { startEnvoy } from '../envoy.ts';
import { tellsWhenTheClientLeaves } from '../leaving.ts';
import { gatewayGivesUpFirst } from '../limits.ts';
import { routeRules } from '../preset.ts';
import { portOf } from '../rig.ts';
import { servesTheOfficialClient } from '../serving.ts';

/** The official client through Envoy, as Gateway API controllers configure it for the HTTPRoute that the chart renders. */

const start = async (ports: readonly number[], tables = {}) => startEnvoy(await routeRules(tables), ports);
const startImpatient = async (ports: readonly number[]) => {
  const timeouts = { request: '1s', backendRequest: '1s' };
  const rules = (await routeRules()).map((rule) => ({ ...rule, timeouts }));
  return startEnvoy(rules, ports);
};

describe('HTTPRoute in Envoy', () => {
  servesTheOfficialClient((ports) => start(ports));
  tellsWhenTheClientLeaves((ports) => start(ports));
  gatewayGivesUpFirst({ start, startImpatient });
});

describe('helm test behind an HTTPRoute', () => {
  const gateway = useGateway();

  test.each([
    ['passes', start, 0, 'streaming: ok'],
    [
      'fails where a timeout is shorter than the answer, and says where to look',
      startImpatient,
      1,
      'timeout of your',
    ],
  ] as const)('%s', async (_name, startProxy, code, said) => {
    const proxy = await startProxy([portOf(gateway)]);
    try {
      const result = await runHelmTest('streaming', gateway, { TEST_STREAM_URL: proxy.url });
      expect(result).toMatchObject({ code, output: expect.stringContaining(said) });
    } finally {
      await proxy.stop();
    }
  });
});

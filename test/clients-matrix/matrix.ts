import { afterAll, beforeAll, beforeEach, describe, test } from 'vitest';
import type { User } from '../harness/gateway/register.ts';
import { addKey, registerWithKeys } from '../harness/gateway/register.ts';
import type { GatewayUnderTest } from '../harness/gateway/start-gateway.ts';
import { startGateway } from '../harness/gateway/start-gateway.ts';
import type { FakeVendor } from '../harness/vendors/fake-vendor.ts';
import { startFakeVendor } from '../harness/vendors/fake-vendor.ts';
import './cell.ts';
import type { Client } from './client.ts';
import { startClient, versionsOf } from './client.ts';
import type { Driver } from './driver.ts';
import { errorScenarios, waitsAndRepeats } from './error-scenarios.ts';
import type { Route } from './routes.ts';
import { matrixTables, routes } from './routes.ts';
import { scenarios } from './scenarios.ts';
import type { Scenario, Stage } from './stage.ts';
import { vendorAnswer } from './vendor-answers.ts';

/** Waiting out a Retry-After takes a second each time, so one vendor speaks for all. */
const repeatingRoutes = routes.filter((route) => route.name === 'openai:gpt-test');

/** All tests of one client: each scenario against each vendor, by each way to it. */
export function testClient(client: Client): void {
  const versions = versionsOf(client);
  let gateway: GatewayUnderTest;
  let selfHosted: FakeVendor;
  let user: User;
  let driver: Driver | null = null;

  beforeAll(async () => {
    selfHosted = await startFakeVendor();
    gateway = await startGateway({ tables: matrixTables() });
    user = await registerWithKeys(gateway.url);
    const address = { base_url: `${selfHosted.url}/v1`, declared_region: 'in' };
    await addKey(user, { provider: 'self_hosted', api_key: 'none', ...address });
  });

  afterAll(async () => {
    await driver?.close();
    await gateway?.stop();
    await selfHosted?.close();
  });

  beforeEach(() => {
    gateway.vendors.clear();
    selfHosted.clear();
  });

  const stage = (route: Route): Stage => {
    const vendor = route.vendor === 'self_hosted' ? selfHosted : gateway.vendors[route.vendor];
    const running = driver === null || driver.ended ? startClient(client, gateway.url, user.key) : driver;
    driver = running;
    return {
      client,
      route,
      vendor,
      everyVendor: (script) => {
        gateway.vendors.always(script);
        selfHosted.always(script);
      },
      says: (...sayings) => vendor.script(...sayings.map((saying) => vendorAnswer(route.vendor, saying))),
      ask: (action, additions = {}) =>
        running.ask({ do: action, model: route.model, headers: route.headers, ...additions }),
    };
  };

  const all: [string, Scenario, readonly Route[]][] = [
    ...[...scenarios, ...errorScenarios].map(([name, run]): [string, Scenario, readonly Route[]] => [
      name,
      run,
      routes,
    ]),
    ['retry', waitsAndRepeats, repeatingRoutes],
  ];
  for (const [scenario, run, ways] of all) {
    describe(`${client.name}: ${scenario}`, () => {
      for (const route of ways) {
        test(`${route.vendor} by ${route.name}`, async ({ task }) => {
          task.meta.cell = { client: client.name, versions, vendor: route.vendor, scenario };
          await run(stage(route));
        });
      }
    });
  }
}

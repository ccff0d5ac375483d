import { call, check, run } from './gateway.mjs';

/** The pods are ready, have tables, and answer through the Service as a gateway does. */
await run('ready', async () => {
  const { TEST_URL: url, TEST_ADMIN_URL: adminUrl } = process.env;
  const ready = await call(`${adminUrl}/readyz`);
  check(ready.status === 200, `/readyz was answered ${ready.status}: ${JSON.stringify(ready.body)}`);
  check(ready.body.tables.last_reload_ok, 'the tables in the ConfigMap are refused; the log says why');
  const metrics = await call(`${adminUrl}/metrics`);
  check(String(metrics.body).includes('gw_inflight_streams'), '/metrics does not show the gateway');
  const refused = await call(`${url}/v1/models`);
  check(refused.status === 401, `a call without a key was answered ${refused.status}, not 401`);
  check(refused.body.error?.type === 'authentication_error', 'the error is not in the shape of the API');
  const probes = await call(`${url}/readyz`);
  check(probes.status !== 200, 'probes can be reached through the Service of the API');
});

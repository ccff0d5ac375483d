import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { root } from '../../chart/chart-files.ts';
import { pythonWith, runPython } from '../../harness/clients/python-venv.ts';
import { skipWithout } from '../../harness/stage/tools.ts';
import { answer, failure, tokensThen } from '../../harness/vendors/vendor-plans.ts';
import { startNginx } from '../nginx.ts';
import { presetAnnotations } from '../preset.ts';
import type { Rig } from '../rig.ts';
import { startRig } from '../rig.ts';

/** The official client for Python: what it sees through a proxy is what it sees without one. */

const script = join(root, 'test/clients/python/openai_client.py');
/** What differs from call to call. */
const passing = /[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}|(?<=latency_ms['"]: ?)\d+/g;

let rig: Rig;

beforeAll(async () => {
  rig = await startRig(async (ports) => startNginx(await presetAnnotations('nginx'), ports));
});
afterAll(async () => {
  await rig?.stop();
});

test('the Python client sees answers, streams, tools and errors as if nginx were not there', async () => {
  const python = skipWithout('python3', 'the Python client runs on it');
  for (const vendor of [
    rig.gateway.vendors.openai,
    rig.gateway.vendors.anthropic,
    rig.gateway.vendors.sarvam,
  ]) {
    vendor.when('use-tools', answer({ toolCalls: [{ id: 'call_a', name: 'weather', arguments: '{}' }] }));
    vendor.when('break-off', tokensThen(2, 'fin'));
    vendor.when('too-many', failure(429, { 'retry-after': '1' }));
    vendor.when('all-down', failure(503));
  }
  const interpreter = await pythonWith(python, ['openai==2.54.0']);
  const see = async (url: string) => {
    const env = { GATEWAY_URL: url, GATEWAY_KEY: rig.user.key };
    return JSON.stringify(await runPython<unknown>(interpreter, script, env)).replaceAll(passing, '');
  };
  const direct = await see(rig.gateway.url);
  expect(direct).toContain('"streamed":"Namaste, world."');
  expect(await see(rig.proxy.url)).toBe(direct);
}, 240_000);

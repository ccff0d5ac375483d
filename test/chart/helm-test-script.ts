import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { freePort } from '../../src/dev/free-port.ts';
import type { GatewayUnderTest } from '../harness/gateway/start-gateway.ts';
import { chartFolder, root } from './chart-files.ts';

/** Runs a script of `helm test` against a gateway as its pod would; its exit code and output. */
export async function runHelmTest(
  name: string,
  gateway: GatewayUnderTest,
  env: Readonly<Record<string, string>> = {},
): Promise<{ code: number | null; output: string }> {
  const child = spawn(process.execPath, [join(root, chartFolder, `files/tests/${name}.mjs`)], {
    env: {
      TEST_URL: gateway.url,
      TEST_STREAM_URL: gateway.url,
      TEST_ADMIN_URL: gateway.adminUrl,
      TEST_INGRESS_PRESET: 'nginx',
      TEST_DEMO_PROGRAM: join(root, 'dist/main.js'),
      TEST_DEMO_HOST: '127.0.0.1',
      TEST_DEMO_PORT: String(await freePort()),
      TEST_DEMO_ALLOWED: 'true',
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  child.stdout.on('data', (bytes: Buffer) => {
    output += bytes.toString();
  });
  child.stderr.on('data', (bytes: Buffer) => {
    output += bytes.toString();
  });
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  return { code, output };
}

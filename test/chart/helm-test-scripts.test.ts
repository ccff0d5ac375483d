/** The scripts of `helm test`, run against a gateway as their pods would run them. */
import { createServer } from 'node:http';
import { expect, test } from 'vitest';
import { freePort } from '../../src/dev/free-port.ts';
import { useGateway } from '../harness/gateway/use-gateway.ts';
import { runHelmTest } from './helm-test-script.ts';

const open = useGateway();
const walled = useGateway({ env: { GW_OUTBOUND_POLICY: 'public-only' } });

test.each(['ready', 'chat', 'streaming'])('%s passes against a healthy gateway', async (name) => {
  expect(await runHelmTest(name, open)).toMatchObject({
    code: 0,
    output: expect.stringContaining(`${name}: ok`),
  });
});

test('chat proves the refusal of a private endpoint where no CIDR allows it', async () => {
  const { code, output } = await runHelmTest('chat', walled, { TEST_DEMO_ALLOWED: 'false' });
  expect({ code, output }).toMatchObject({ code: 0, output: expect.stringContaining('outbound policy') });
});

test('chat fails when a private endpoint is reached that should not be', async () => {
  const { code, output } = await runHelmTest('chat', open, { TEST_DEMO_ALLOWED: 'false' });
  expect({ code, output }).toMatchObject({ code: 1, output: expect.stringContaining('FAILED') });
});

test('ready fails when the API does not answer as a gateway does', async () => {
  const { code, output } = await runHelmTest('ready', open, { TEST_URL: open.adminUrl });
  expect({ code, output }).toMatchObject({ code: 1, output: expect.stringContaining('not 401') });
});

test('streaming fails behind a proxy that buffers, and names the annotation', async () => {
  const proxy = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      void bufferedAnswer(
        request.method ?? 'GET',
        request.url ?? '/',
        request.headers,
        Buffer.concat(parts),
      ).then(({ status, type, body }) => response.writeHead(status, { 'content-type': type }).end(body));
    });
  });
  const port = await freePort();
  await new Promise<void>((resolve) => proxy.listen(port, '127.0.0.1', resolve));
  try {
    const result = await runHelmTest('streaming', open, { TEST_STREAM_URL: `http://127.0.0.1:${port}` });
    expect(result).toMatchObject({ code: 1, output: expect.stringContaining('proxy-buffering') });
  } finally {
    proxy.closeAllConnections();
    proxy.close();
  }
});

async function bufferedAnswer(
  method: string,
  path: string,
  headers: NodeJS.Dict<string | string[]>,
  body: Buffer,
): Promise<{ status: number; type: string; body: string }> {
  const kept = ['authorization', 'content-type', 'x-gateway-override-model'].flatMap((name) =>
    typeof headers[name] === 'string' ? [[name, headers[name]] as [string, string]] : [],
  );
  const answer = await fetch(`${open.url}${path}`, {
    method,
    headers: Object.fromEntries(kept),
    ...(body.length > 0 ? { body: new Uint8Array(body) } : {}),
    signal: AbortSignal.timeout(30_000),
  });
  return { status: answer.status, type: answer.headers.get('content-type') ?? '', body: await answer.text() };
}

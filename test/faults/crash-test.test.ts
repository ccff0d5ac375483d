/** `npm run crash-test`: our own gateway passes it; a forwarder without any care does not. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Server } from 'node:http';
import { createServer, request as forward } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { faults } from '../../scripts/crash-test/faults.ts';
import type { Result } from '../../scripts/crash-test/run.ts';
import { freePort } from '../../src/dev/free-port.ts';
import { registerUser } from '../harness/gateway/register.ts';
import { tables } from '../harness/gateway/tables.ts';
import { startForTest } from '../harness/gateway/use-gateway.ts';
import { recordFault } from '../harness/scorecard/scorecard.ts';

const main = join(import.meta.dirname, '../../scripts/crash-test/main.ts');
const vendors = ['openai', 'anthropic', 'together', 'sarvam'] as const;

interface Ran {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

async function run(url: string, key: string, ...options: string[]): Promise<Ran> {
  const given = ['--url', url, '--key', key, '--idle-seconds', '1', ...options];
  const child = spawn(process.execPath, [main, ...given], { stdio: ['ignore', 'pipe', 'pipe'] });
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', (bytes) => {
    stdout += bytes;
  });
  child.stderr.on('data', (bytes) => {
    stderr += bytes;
  });
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, stdout, stderr };
}

function resultsOf(ran: Ran): Result[] {
  expect(ran.stderr).toBe('');
  return JSON.parse(ran.stdout) as Result[];
}

test('our gateway: every fault ends in pass or safe, by override and by tier', async () => {
  const vendorPort = await freePort();
  const addresses = vendors.map((name) => [
    `GW_${name.toUpperCase()}_BASE_URL`,
    `http://127.0.0.1:${vendorPort}/${name}`,
  ]);
  const gateway = await startForTest({
    env: Object.fromEntries(addresses) as Record<string, string>,
    // The cooldown of real tables: the flapping candidate must come back from it.
    tables: tables({ timeouts: { stream_idle_seconds: 1 }, cooldown: {} }),
  });
  const user = await registerUser(gateway.url);
  const tier = ['--tier', '--vendor-port', String(vendorPort), '--outage-seconds', '5'];
  const ran = await run(gateway.url, user.key, ...tier, '--json');
  const results = resultsOf(ran);
  for (const { id, required, happened, verdict, fault } of results)
    recordFault({
      fault: `crash test, ${id}: ${fault}`,
      required,
      figure: happened,
      passed: verdict !== 'fail',
    });
  expect(results.filter(({ verdict }) => verdict === 'fail')).toEqual([]);
  expect(ran.code).toBe(0);
  const ids = results.map(({ id }) => id);
  expect(ids).toEqual(expect.arrayContaining(faults.map(({ id }) => id)));
  expect(ids).toEqual(
    expect.arrayContaining(['flapping', 'healthy', 'tier-flapping', 'tier-hang-before-headers']),
  );
  // What the specification forbids to rescue is safe; what can be rescued is.
  const safeTiers = results.filter(({ id, verdict }) => id.startsWith('tier-') && verdict === 'safe');
  expect(safeTiers.map(({ id }) => id).sort()).toEqual([
    'tier-cut-stream',
    'tier-error-event-later',
    'tier-nonsense-later',
    'tier-reset-stream',
    'tier-stalled-stream',
  ]);
  expect((await user.client.get('/v1/keys')).json<unknown[]>(), 'the keys are taken away again').toEqual([]);
}, 120_000);

/** Keeps what it is told under /v1/keys, and pipes chats to it without a thought. */
async function startCarelessForwarder(): Promise<{ server: Server; url: string }> {
  const keys = new Map<string, { id: string; base_url: string; label: string }>();
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (bytes) => {
      body += bytes;
    });
    request.on('end', () => {
      const path = request.url ?? '';
      if (path.startsWith('/v1/logs')) response.end('{"data":[],"next_cursor":null}');
      else if (request.method === 'DELETE') response.writeHead(204).end();
      else if (path === '/v1/keys') {
        const key = { id: crypto.randomUUID(), ...(JSON.parse(body) as { base_url: string; label: string }) };
        keys.set(key.label, key);
        response.writeHead(201).end(JSON.stringify(key));
      } else {
        const label = /^self_hosted\/([^:]+):/.exec(String(request.headers['x-gateway-override-model']))?.[1];
        const upstream = forward(`${keys.get(label ?? '')?.base_url}/chat/completions`, { method: 'POST' });
        upstream.on('error', () => response.destroy());
        upstream.on('response', (answer) => {
          response.writeHead(answer.statusCode ?? 0, answer.headers);
          answer.on('error', () => response.destroy());
          answer.pipe(response);
        });
        upstream.end(body);
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

test('a careless forwarder: the table says what fails, and the exit code is 1', async () => {
  const { server, url } = await startCarelessForwarder();
  try {
    const asJson = await run(url, 'none', '--json');
    const results = resultsOf(asJson);
    const verdicts = Object.fromEntries(results.map(({ id, verdict }) => [id, verdict]));
    const failing = [
      'refused-connection',
      'hang-before-headers',
      'slow-first-token',
      'garbage-json',
      'truncated-json',
    ];
    for (const id of [...failing, 'empty-200', 'html-200', 'garbage-stream', 'cut-stream', 'stalled-stream'])
      expect(verdicts[id], id).toBe('fail');
    expect(asJson.code).toBe(1);
  } finally {
    server.closeAllConnections();
    server.close();
  }
});

test.each([
  ['without a key', ['--url', 'http://127.0.0.1:1'], /npm run crash-test/],
  [
    'against nothing',
    ['--url', 'http://127.0.0.1:1', '--key', 'k', '--vendor-host', '127.0.0.1'],
    /does not answer/,
  ],
  [
    'with a port that is none',
    ['--url', 'http://127.0.0.1:1', '--key', 'k', '--vendor-port', 'x'],
    /--vendor-port/,
  ],
])('%s it says what is missing, and the exit code is 2', async (_name, options, words) => {
  const child = spawn(process.execPath, [main, ...options], { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (bytes) => {
      output += bytes;
    });
  expect(await once(child, 'close')).toEqual([2, null]);
  expect(output).toMatch(words);
});

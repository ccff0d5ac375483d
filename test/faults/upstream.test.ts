/** Vendors fail in every way the network knows: a fallback before the first token, an error event after it. */
import { connect } from 'node:net';
import { beforeEach, describe, expect, test } from 'vitest';
import { chatBody, chatPath, logRows } from '../harness/gateway/chat.ts';
import type { User } from '../harness/gateway/register.ts';
import { providerSecret, registerWithKeys } from '../harness/gateway/register.ts';
import { takeApart } from '../harness/gateway/sse-reader.ts';
import type { TablesInput } from '../harness/gateway/tables.ts';
import { tables } from '../harness/gateway/tables.ts';
import { testsUndici } from '../harness/gateway/upstream-client.ts';
import { useGateway } from '../harness/gateway/use-gateway.ts';
import { sendChat } from '../harness/ledgers/fault-load.ts';
import { eventually, untilStill } from '../harness/measure/eventually.ts';
import { expectWithin, measured, timed } from '../harness/measure/fault-bounds.ts';
import { metric, untilRowsStored } from '../harness/measure/fault-metrics.ts';
import { sql } from '../harness/servers/fault-postgres.ts';
import { useServer } from '../harness/servers/use-started.ts';
import type { RawPlan } from '../harness/vendors/fault-raw-vendor.ts';
import {
  bytes,
  endless,
  gzipped,
  healthy,
  openRawStream,
  startRawVendor,
} from '../harness/vendors/fault-raw-vendor.ts';
import { openAiChunk, sse } from '../harness/vendors/openai-wire.ts';
import { hang, longStream, streamOf } from '../harness/vendors/vendor-plans.ts';

const mebibyte = 1024 * 1024;

/** Stands for OpenAI; its fallback in `gw/cheap` is Together, a healthy one. */
const raw = useServer(startRawVendor);
const gateway = useGateway(() => ({ env: { GW_OPENAI_BASE_URL: raw.url }, tables: tablesWith(1) }));
let user: User;

function tablesWith(idleSeconds: number): TablesInput {
  return tables({
    tiers: {
      cheap: [
        { provider: 'openai', model: 'gpt-test-small' },
        { provider: 'together', model: 'tog/test' },
        { provider: 'sarvam', model: 'sarvam-test' },
      ],
      balanced: [
        { provider: 'together', model: 'tog/test' },
        { provider: 'sarvam', model: 'sarvam-test' },
      ],
      premium: [{ provider: 'sarvam', model: 'sarvam-test' }],
    },
    timeouts: { stream_idle_seconds: idleSeconds },
    limits: { answer_bytes: 4 * mebibyte, stream_bytes: 64 * mebibyte },
  });
}

beforeEach(async () => {
  user = await registerWithKeys(gateway.url);
});

const viaRaw = { model: 'gw/cheap' };
const oneSecond = { 'x-gateway-timeout': '1' };

interface Row {
  readonly status: string;
  readonly error: string | null;
  readonly provider: string;
  readonly attempts: { provider: string; status: number | null; reason: string }[];
}

/** The only row of the user, by SQL and by GET /v1/logs. */
async function onlyRow(): Promise<Row> {
  const row = await eventually(async () => (await userRows())[0]);
  await untilRowsStored(gateway);
  expect(await userRows()).toHaveLength(1);
  expect(await logRows(user.client)).toMatchObject([
    { status: row.status, error: row.error, provider: row.provider },
  ]);
  return row;
}

function userRows(): Promise<Row[]> {
  return sql<Row & Record<string, unknown>>(
    gateway.database.url,
    'SELECT status, error, provider, attempts FROM request_logs WHERE user_id = $1',
    [user.id],
  );
}

/** From now on: fifty vendors in one process may well be silent for a second. */
async function allowSilence(): Promise<void> {
  await gateway.writeTables(tablesWith(60));
  await eventually(async () => (await metric(gateway, 'gw_config_generation')) >= 2 || undefined);
}

/** Each vendor saw its own key and no other. */
function expectKeysAtHome(): void {
  for (const request of raw.requests) {
    expect(request).toContain(`Bearer ${providerSecret(user, 'openai')}`);
    for (const other of ['together', 'sarvam', 'anthropic'])
      expect(request).not.toContain(providerSecret(user, other));
  }
  for (const entry of gateway.vendors.together.ledger) {
    expect(entry.headers['authorization']).toBe(`Bearer ${providerSecret(user, 'together')}`);
    expect(JSON.stringify(entry.headers)).not.toContain(providerSecret(user, 'openai'));
  }
}

/** After a fault the vendor is used again as if nothing had been. */
async function expectPoolUnharmed(): Promise<void> {
  raw.clear();
  for (const stream of [false, true]) {
    const sent = await sendChat(gateway.url, user, { stream, body: viaRaw });
    expect(sent.text).toContain('"provider":"openai"');
    expect(sent.whole).toBe(true);
  }
}

const json = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n';
const events = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n';
const longChunk = Buffer.from(`10000\r\n${'x'.repeat(0x10000)}\r\n`);

interface Fault {
  readonly name: string;
  readonly plan: RawPlan;
  /** What of the gateway's patience the fault uses up, milliseconds. */
  readonly costsMs?: number;
}

const faults: Fault[] = [
  { name: 'a reset after the request', plan: (socket) => void socket.resetAndDestroy() },
  { name: 'a close without an answer', plan: (socket) => void socket.end() },
  { name: 'silence', plan: () => {}, costsMs: 1_000 },
  { name: 'JSON headers, then silence', plan: bytes(`${json}content-length: 9\r\n\r\n`), costsMs: 1_000 },
  { name: 'stream headers, then silence', plan: bytes(`${events}content-length: 9\r\n\r\n`), costsMs: 1_000 },
  {
    name: 'a flood of 1xx answers',
    plan: endless('', 'HTTP/1.1 102 Processing\r\n\r\n'.repeat(100)),
    costsMs: 1_000,
  },
  {
    name: 'headers without end',
    plan: endless('HTTP/1.1 200 OK\r\n', `x: ${'y'.repeat(1000)}\r\n`.repeat(10)),
  },
  { name: 'a status line of nonsense', plan: bytes('SSH-2.0-OpenSSH_9.7\r\n') },
  {
    name: 'an unasked upgrade',
    plan: bytes('HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n'),
  },
  { name: 'a head that stops in the middle', plan: (socket) => void socket.end('HTTP/1.1 200 O') },
  { name: 'status 204', plan: bytes('HTTP/1.1 204 No Content\r\n\r\n') },
  { name: 'a JSON body without end', plan: endless(`${json}transfer-encoding: chunked\r\n\r\n`, longChunk) },
  {
    name: 'an event without end',
    plan: endless(`${events}transfer-encoding: chunked\r\n\r\n6\r\ndata: \r\n`, longChunk),
  },
  {
    name: 'a body shorter than promised',
    plan: (socket) => void socket.end(`${json}content-length: 500\r\n\r\n{"id":"cut`),
  },
  { name: 'a gzip bomb', plan: gzipped(256 * mebibyte) },
  {
    name: 'a body labelled gzip that is not',
    plan: bytes(`${json}content-encoding: gzip\r\ncontent-length: 2\r\n\r\n{}`),
  },
  {
    name: 'a chain of encodings',
    plan: bytes(`${json}content-encoding: ${'gzip, '.repeat(50)}gzip\r\ncontent-length: 2\r\n\r\n{}`),
  },
];

describe('before the first token', () => {
  test.each(faults.flatMap((fault) => [false, true].map((stream) => ({ ...fault, stream }))))(
    '$name leads to the next candidate (stream: $stream)',
    async ({ name, plan, costsMs = 0, stream }) => {
      raw.always(plan);
      const rssBefore = await metric(gateway, 'process_resident_memory_bytes');
      const sent = await sendChat(gateway.url, user, { stream, body: viaRaw, headers: oneSecond });
      expect(sent.status, sent.text).toBe(200);
      expect(sent.whole).toBe(true);
      expect(sent.text).toContain('"provider":"together"');
      expectWithin(`fallback after ${name}, beyond its own time`, sent.tookMs - costsMs, 200);
      expect(raw.requests).toHaveLength(1);
      expect(gateway.vendors.calls()).toEqual(['together']);
      const row = await onlyRow();
      expect(row).toMatchObject({ status: 'success', error: null, provider: 'together' });
      expect(row.attempts.map((attempt) => attempt.provider)).toEqual(['openai', 'together']);
      expectKeysAtHome();
      const grownBytes = (await metric(gateway, 'process_resident_memory_bytes')) - rssBefore;
      expect(grownBytes).toBeLessThan(64 * mebibyte);
      await expectPoolUnharmed();
    },
  );

  test('a vendor that refuses connections costs 50 ms', async () => {
    await raw.stopListening();
    try {
      const sent = await sendChat(gateway.url, user, { body: viaRaw });
      expect(sent.text).toContain('"provider":"together"');
      expectWithin('fallback after a refused connection', sent.tookMs, 50);
      expect((await onlyRow()).attempts).toMatchObject([
        { provider: 'openai', status: null },
        { provider: 'together' },
      ]);
    } finally {
      await raw.listenAgain();
    }
    await expectPoolUnharmed();
  });

  test('a vendor that resets connections as they come costs 50 ms', async () => {
    raw.onAccept((socket) => socket.resetAndDestroy());
    const sent = await sendChat(gateway.url, user, { body: viaRaw });
    expect(sent.text).toContain('"provider":"together"');
    expectWithin('fallback after a reset connection', sent.tookMs, 50);
    expect(raw.requests).toEqual([]);
    expect((await onlyRow()).status).toBe('success');
    await expectPoolUnharmed();
  });

  test.each([301, 302, 303, 307, 308])(
    'a redirect (%i) is not followed, so no key goes astray',
    async (status) => {
      const elsewhere = await startRawVendor();
      try {
        raw.always(
          bytes(
            `HTTP/1.1 ${status} Moved\r\nlocation: ${elsewhere.url}/v1/chat/completions\r\ncontent-length: 0\r\n\r\n`,
          ),
        );
        for (const stream of [false, true]) {
          const sent = await sendChat(gateway.url, user, { stream, body: viaRaw });
          expect(sent.text).toContain('"provider":"together"');
        }
        expect(raw.requests).toHaveLength(2);
        expect(elsewhere.connections()).toBe(0);
        expectKeysAtHome();
      } finally {
        await elsewhere.close();
      }
    },
  );

  test.each([false, true])(
    'a gzipped answer that nobody asked for is served (stream: %s)',
    async (stream) => {
      raw.always(gzipped(1_000));
      const sent = await sendChat(gateway.url, user, { stream, body: viaRaw });
      expect(sent.status, sent.text).toBe(200);
      expect(sent.text).toContain(stream ? '"provider":' : '"provider":"openai"');
    },
  );

  test.each([
    ['resets', (socket) => void socket.resetAndDestroy()],
    ['hangs', () => {}],
  ] as [string, RawPlan][])(
    'an override to a vendor that %s is 502, with no fallback',
    async (_name, plan) => {
      raw.always(plan);
      const headers = { ...oneSecond, 'x-gateway-override-model': 'openai:gpt-test-small' };
      const sent = await sendChat(gateway.url, user, { headers });
      expect(sent.status).toBe(502);
      expect(JSON.parse(sent.text)).toMatchObject({ error: { type: 'provider_error' } });
      expect(gateway.vendors.calls()).toEqual([]);
      expect(raw.requests).toHaveLength(1);
      expect(await onlyRow()).toMatchObject({ status: 'error', provider: 'openai' });
    },
  );
});

describe('a kept-alive socket that the vendor has closed', () => {
  /** Sends a chat on a raw connection; resolves once its bytes are on their way. */
  async function chatOnItsWay(): Promise<{ answer: Promise<string> }> {
    const { hostname, port } = new URL(gateway.url);
    const socket = connect(Number(port), hostname);
    const body = JSON.stringify(chatBody(viaRaw));
    const request = [
      `POST ${chatPath} HTTP/1.1`,
      `host: ${hostname}`,
      `authorization: Bearer ${user.key}`,
      'content-type: application/json',
      `content-length: ${body.length}`,
      'connection: close',
    ];
    const answer = new Promise<string>((resolve) => {
      let text = '';
      socket.on('data', (data) => {
        text += data.toString('utf8');
      });
      socket.on('error', () => {});
      socket.on('close', () => resolve(text));
    });
    await new Promise((resolve) => socket.once('connect', resolve));
    await new Promise((resolve) => socket.write(`${request.join('\r\n')}\r\n\r\n${body}`, resolve));
    return { answer };
  }

  test('costs nobody an answer, however close the race', async () => {
    for (let round = 1; round <= 10; round += 1) {
      raw.always(healthy);
      expect((await sendChat(gateway.url, user, { body: viaRaw })).text).toContain('"provider":"openai"');
      const before = raw.requests.length;
      // While the gateway is frozen both the end of the socket and the next request reach its host.
      process.kill(gateway.pid, 'SIGSTOP');
      for (const socket of raw.openSockets()) socket.destroy();
      const { answer } = await chatOnItsWay();
      process.kill(gateway.pid, 'SIGCONT');
      expect(await answer).toContain('"provider":"openai"');
      expect(raw.requests.length - before, 'the request was made once').toBe(1);
    }
    expect(gateway.vendors.calls()).toEqual([]);
  });
});

test('a request that the vendor reads is made once, however soon it closes the kept-alive socket', async () => {
  for (let round = 1; round <= 50; round += 1) {
    raw.always(healthy);
    expect((await sendChat(gateway.url, user, { body: viaRaw })).text).toContain('"provider":"openai"');
    const before = raw.requests.length;
    raw.always((socket) => void socket.end());
    expect((await sendChat(gateway.url, user, { body: viaRaw })).text).toContain('"provider":"together"');
    expect(raw.requests.length - before).toBe(1);
  }
});

const cuts: [name: string, cut: RawPlan][] = [
  ['silence', () => {}],
  ['a reset', (socket) => void setImmediate(() => socket.resetAndDestroy())],
  ['a close', (socket) => void socket.end()],
  ['a clean end without [DONE]', (socket) => void socket.write('0\r\n\r\n')],
  [
    'an error event',
    (socket) => {
      const event = 'data: {"error":{"message":"fell over","type":"server_error"}}\n\n';
      socket.write(`${event.length.toString(16)}\r\n${event}\r\n`);
    },
  ],
  ['an event without end', endless('', longChunk)],
  ['a broken chunk size', (socket) => void socket.write('zz\r\n')],
];

describe('after the first token', () => {
  test.each(cuts.flatMap(([name, cut]) => [1, 100].map((tokens) => [name, tokens, cut] as const)))(
    '%s (token %i) is an error event without [DONE]',
    async (name, tokens, cut) => {
      raw.always((socket, request) => {
        openRawStream(socket, tokens);
        cut(socket, request);
      });
      let ended = '';
      const tookMs = await timed(async () => {
        const reader = await user.client.stream(chatPath, chatBody({ ...viaRaw, stream: true }));
        const stream = takeApart(await reader.rest());
        ended = reader.end ?? '';
        expect(stream.done).toBe(false);
        expect(stream.error).toMatchObject({ type: 'provider_error', message: expect.any(String) });
        if (name !== 'a reset')
          expect(stream.content).toBe(Array.from({ length: tokens }, (_, i) => `t${i} `).join(''));
      });
      expect(ended).toBe('complete');
      expectWithin(`end of the stream after ${name}`, tookMs - (name === 'silence' ? 1_000 : 0), 200);
      expect(gateway.vendors.calls(), 'no further candidate').toEqual([]);
      const row = await onlyRow();
      expect(row).toMatchObject({ status: 'incomplete', provider: 'openai' });
      expect(row.error).toMatch(/^provider_error: /);
      const reusable = name.startsWith('a clean end');
      if (!reusable) await eventually(() => Promise.resolve(raw.openSockets().length === 0 || undefined));
    },
  );

  test('a stream that never ends is ended at its limit', async () => {
    const token = sse(openAiChunk('gpt-test-small', { content: 'y'.repeat(10_000) }));
    raw.always((socket) => {
      openRawStream(socket, 1);
      endless('', `${token.length.toString(16)}\r\n${token}\r\n`)(socket, '');
    });
    const sent = await sendChat(gateway.url, user, { stream: true, body: viaRaw });
    expect(sent.whole).toBe(false);
    expect(sent.text.length).toBeLessThan(80 * mebibyte);
    expect(sent.text.slice(-500)).toMatch(/data: \{"error":/);
    expect((await onlyRow()).status).toBe('incomplete');
  });
});

describe('a client that leaves', () => {
  const someTokens = streamOf(
    [0, 1, 2].map((index) => sse(openAiChunk('tog/test', { content: `t${index} ` }))),
    'hang',
  );

  test.each([
    ['before the first token', hang, false, 0],
    ['before a JSON answer', hang, true, 0],
    ['after the first token', someTokens, false, 1],
  ] as const)(
    '%s ends the upstream call, and no other is made',
    async (_name, script, wholeAnswer, tokens) => {
      const { together, sarvam } = gateway.vendors;
      together.always(script);
      const leaving = new AbortController();
      const call = user.client
        .request('POST', chatPath, { body: chatBody({ stream: !wholeAnswer }), signal: leaving.signal })
        .catch(() => 'left');
      const received = await together.received(0);
      if (tokens > 0)
        await eventually(async () => (await metric(gateway, 'gw_inflight_streams')) === 1 || undefined);
      const leftAtMs = performance.now();
      leaving.abort();
      expect(await received.closedEarly).toBe(true);
      expectWithin('upstream closed after the client left', (received.peerClosedAtMs ?? 0) - leftAtMs, 100);
      await call;
      expect(await onlyRow()).toMatchObject({ status: 'client_closed', provider: 'together' });
      expect(sarvam.ledger).toEqual([]);
      await eventually(async () => (await metric(gateway, 'gw_inflight_requests')) === 0 || undefined);
    },
  );

  test('200 times leaves no socket and no handle behind', async () => {
    const { together, sarvam } = gateway.vendors;
    await allowSilence();
    together.when('before', hang);
    together.when('after', someTokens);
    const handles = () => metric(gateway, 'nodejs_active_handles_total');
    const base = await handles();
    for (let batch = 0; batch < 4; batch += 1) {
      const leaving = new AbortController();
      const already = together.ledger.length;
      const calls = Array.from({ length: 50 }, (_, index) => {
        const messages = [{ role: 'user', content: index % 2 === 0 ? 'before' : 'after' }];
        const body = chatBody({ stream: true, messages });
        return user.client.request('POST', chatPath, { body, signal: leaving.signal }).catch(() => 'left');
      });
      await together.received(already + 49);
      leaving.abort();
      await Promise.all(calls);
    }
    await eventually(() => Promise.resolve(together.openSockets() === 0 || undefined));
    await eventually(async () => (await handles()) <= base + 2 || undefined);
    for (const gauge of ['gw_inflight_requests', 'gw_inflight_attempts', 'gw_inflight_streams'])
      await eventually(async () => (await metric(gateway, gauge)) === 0 || undefined);
    expect(sarvam.ledger).toEqual([]);
    const rows = await eventually(async () => {
      const found = await userRows();
      return found.length >= 200 ? found : undefined;
    });
    expect(rows).toHaveLength(200);
    expect(new Set(rows.map((row) => row.status))).toEqual(new Set(['client_closed']));
  });
});

describe('clients that stop reading', () => {
  test('hold their vendors back, not the gateway’s memory', async () => {
    const { together } = gateway.vendors;
    const clients = 50;
    await allowSilence();
    together.always(longStream(20 * 1024, 1024));
    // What whole streams leave behind until it is collected is no growth.
    const whole = 4;
    for (let round = 0; round < whole; round += 1) await sendChat(gateway.url, user, { stream: true });
    const rss = () => metric(gateway, 'process_resident_memory_bytes');
    const base = await rss();
    const { hostname, port } = new URL(gateway.url);
    const body = JSON.stringify(chatBody({ stream: true }));
    const request = `POST ${chatPath} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${user.key}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
    const sockets = Array.from({ length: clients }, () => {
      const socket = connect(Number(port), hostname);
      socket.on('error', () => {});
      socket.pause();
      socket.write(request);
      return socket;
    });
    await together.received(whole - 1 + clients);
    const streams = together.ledger.slice(whole);
    await untilStill(() => streams.reduce((sum, stream) => sum + stream.bytesSent, 0));
    const grownBytes = (await rss()) - base;
    measured(`${clients} paused clients: ${(grownBytes / mebibyte).toFixed(1)} MiB`);
    // Of 20 each. undici reads into buffers of their own, which lie there until they are collected.
    expect(grownBytes).toBeLessThan(clients * (testsUndici() ? 4 : 2) * mebibyte);
    expect(streams.filter((stream) => stream.finished)).toEqual([]);
    const [patient, ...others] = sockets;
    for (const socket of others) socket.destroy();
    let last = '';
    patient?.on('data', (data) => {
      last = (last + data.toString('latin1')).slice(-100);
    });
    patient?.resume();
    await eventually(() => Promise.resolve(last.includes('data: [DONE]') || undefined), 15_000);
    patient?.destroy();
    await eventually(() =>
      Promise.resolve(
        streams.filter((stream) => !stream.finished).every((stream) => stream.peerClosedAtMs !== null) ||
          undefined,
      ),
    );
    await eventually(async () => (await userRows()).length === clients + whole || undefined);
    const counts = Map.groupBy(await userRows(), (row) => `${row.status} ${row.error ?? ''}`);
    expect(Object.fromEntries([...counts].map(([end, rows]) => [end, rows.length]))).toEqual({
      'success ': whole + 1,
      'client_closed client_closed: The client left before the end of the answer.': clients - 1,
    });
  });
});

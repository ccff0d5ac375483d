/** Many requests in one packet to the admin port, which asks for no token: few wait, and what is costly is shared. */
import type { AddressInfo, Socket } from 'node:net';
import { connect } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { pino } from 'pino';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createAdminServer } from '../../../src/http/admin/admin-server.ts';
import { maxWaitingRequests } from '../../../src/http/connections/turns.ts';
import { eventually } from '../../harness/measure/eventually.ts';

const scrape = 'GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n';
const description = 'GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n';
const health = 'GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n';
const unreadable = 'GET /%zz HTTP/1.1\r\nhost: x\r\n\r\n';

let admin: FastifyInstance;
let sockets: Socket[];
/** How often each was made. */
let rendered: number;
let described: number;
/** Requests that Node has told of. */
let parsed: number;
/** While it is there, nothing is rendered to its end. */
let gate: Promise<void>;
let open: () => void;

beforeEach(async () => {
  sockets = [];
  rendered = 0;
  described = 0;
  parsed = 0;
  gate = new Promise((resolve) => {
    open = resolve;
  });
  admin = createAdminServer(
    {
      life: { phase: 'serving' },
      tables: () => ({ generation: 1, hash: 'h', lastReloadOk: true }),
      storeReady: () => ({ ready: true, reason: null }),
      metrics: async () => {
        rendered += 1;
        await gate;
        return `rendering_${rendered}`;
      },
      metricsContentType: 'text/plain; version=0.0.4',
      openApi: () => {
        described += 1;
        return { openapi: '3.1.0' };
      },
      api: null,
    },
    pino({ level: 'silent' }),
  );
  admin.server.on('request', () => {
    parsed += 1;
  });
  await admin.listen({ host: '127.0.0.1', port: 0 });
});

afterEach(async () => {
  open();
  for (const socket of sockets) socket.destroy();
  admin.server.closeAllConnections();
  await admin.close();
});

/** Sends all of it in one write; what came back, and whether the connection was closed. */
function send(text: string): { readonly answer: () => string; readonly isClosed: () => boolean } {
  const socket = connect((admin.server.address() as AddressInfo).port, '127.0.0.1');
  sockets.push(socket);
  let answer = '';
  socket.on('error', () => undefined);
  socket.on('data', (chunk) => {
    answer += chunk.toString('latin1');
  });
  socket.write(text);
  return { answer: () => answer, isClosed: () => socket.destroyed };
}

const until = (condition: () => boolean) => eventually(async () => condition() || undefined);

test('of 1,700 scrapes in one write at most one is rendered, the connection is cut, and probes are answered', async () => {
  const flood = send(scrape.repeat(1_700));
  await until(flood.isClosed);
  expect(parsed).toBeLessThanOrEqual(maxWaitingRequests + 2);
  expect(rendered).toBeLessThanOrEqual(1);
  const probe = send(health);
  await until(() => probe.answer().includes('{"status":"ok"}'));
  expect(rendered).toBeLessThanOrEqual(1);
});

test('as many as may wait are not looked at before their turn, and are answered in order', async () => {
  const client = send(scrape + (health + unreadable + description).repeat(2) + scrape + health);
  await until(() => rendered === 1);
  const probe = send(health);
  await until(() => probe.answer().includes('{"status":"ok"}'));
  expect([client.answer(), rendered, described]).toEqual(['', 1, 0]);
  open();
  const parts = /rendering_\d|"status":"ok"|"openapi"|Unknown path/g;
  const said = () => client.answer().match(parts) ?? [];
  await until(() => said().length === 9);
  const round = ['"status":"ok"', 'Unknown path', '"openapi"'];
  expect(said()).toEqual(['rendering_1', ...round, ...round, 'rendering_2', '"status":"ok"']);
});

test('scrapes of many connections share one rendering', async () => {
  const first = send(scrape);
  await until(() => rendered === 1);
  const others = Array.from({ length: 30 }, () => send(scrape + health));
  await until(() => parsed === 1 + 2 * others.length);
  open();
  await until(() => [first, ...others].every(({ answer }) => answer().includes('rendering_1')));
  await until(() => others.every(({ answer }) => answer().includes('{"status":"ok"}')));
  expect(rendered).toBe(1);
});

import type { AddressInfo, Socket } from 'node:net';
import { connect } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { pino } from 'pino';
import { createSystemClock } from '../../src/adapters/system/system-clock.ts';
import { LaterTurns } from '../../src/chat/later-turn.ts';
import type { Accounts } from '../../src/chat/ports.ts';
import type { RoutingTables } from '../../src/core/tables/tables.ts';
import { requireServiceKey } from '../../src/http/access/auth.ts';
import { BodyBudget } from '../../src/http/body/body-budget.ts';
import type { HttpTelemetry, Shortage } from '../../src/http/http-telemetry.ts';
import { Life } from '../../src/http/life.ts';
import type { ServerLimits } from '../../src/http/server.ts';
import { createServer } from '../../src/http/server.ts';
import { unreadAnswers } from '../harness/gateway/unread-answers.ts';
import { callerOf } from './caller.ts';

/** The edge as it is, over real sockets, with routes of the test's own behind it. */
export interface Edge {
  readonly app: FastifyInstance;
  readonly life: Life;
  readonly shed: Shortage[];
  /** One for each reader that was let go. */
  readonly stalled: number[];
  /** Lines of warnings and errors. */
  readonly logged: readonly string[];
  /** Requests that are over: status, and whether the client had everything. */
  readonly ended: { readonly status: number; readonly whole: boolean }[];
  /** Lets the look-up of accounts that are waited for (`x-wait`) go on. */
  letIn(): void;
  connect(...parts: readonly (string | Buffer)[]): Client;
  /** With every connection, at both ends. */
  close(): Promise<void>;
}

/** A raw connection; `text` is what came back so far, once `read` was called. */
export interface Client {
  readonly socket: Socket;
  text: string;
  read(): Client;
  readonly closed: Promise<void>;
}

/** As with a heap of 384 MiB. */
const budgetBytes = 24 * 1024 * 1024;

const limitsOfTests: ServerLimits = {
  bodyLimitBytes: 20 * 1024 * 1024,
  trustedProxyHops: 0,
  maxEventLoopDelayMs: 0,
  heapBytes: 384 * 1024 * 1024,
  maxHeapBytes: 0,
  maxConnections: 10_000,
};

function connectTo(port: number, parts: readonly (string | Buffer)[]): Client {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => undefined);
  socket.setNoDelay(true);
  for (const part of parts) socket.write(part);
  const client: Client = {
    socket,
    text: '',
    read() {
      socket.on('data', (chunk) => {
        client.text += chunk.toString('latin1');
      });
      return client;
    },
    closed: new Promise((resolve) => socket.once('close', () => resolve())),
  };
  return client;
}

/** The look-up that is waited for with `x-wait`, and takes the name in `x-user`. */
function lookUpByName(scope: FastifyInstance, wait: (done: () => void) => void): void {
  scope.decorateRequest('account');
  scope.addHook('onRequest', (request, _reply, done) => {
    request.account = callerOf(String(request.headers['x-user'] ?? 'u'));
    if (request.headers['x-wait'] === undefined) done();
    else wait(done);
  });
}

/**
 * Starts the edge; `routes` come behind the real look-up in `accounts`, or one that takes the name in `x-user`, and
 * `doors` before it.
 */
export async function startEdge(
  routes: (scope: FastifyInstance) => void,
  limits: Partial<ServerLimits> = {},
  accounts: Accounts | null = null,
  doors: (app: FastifyInstance) => void = () => undefined,
): Promise<Edge> {
  const life = new Life(new BodyBudget(budgetBytes), unreadAnswers());
  const shed: Shortage[] = [];
  const stalled: number[] = [];
  const ended: { status: number; whole: boolean }[] = [];
  const telemetry: HttpTelemetry = {
    requestStarted: () => null,
    within: (_trace, next) => next(),
    requestEnded: ({ status, whole }) => void ended.push({ status, whole }),
    requestShed: (shortage) => void shed.push(shortage),
    readerStalled: () => void stalled.push(1),
    authFailed: () => undefined,
    audited: () => undefined,
    authenticated: (trace) => trace,
    legacyUsed: () => undefined,
    adminRequestEnded: () => undefined,
    keyChecked: () => undefined,
  };
  const logged: string[] = [];
  const log = pino({ level: 'warn' }, { write: (line) => void logged.push(line) });
  const tables = () => ({ hash: '0123456789abcdef', legacy: null }) as RoutingTables;
  const later = new LaterTurns();
  const app = await createServer({ ...limitsOfTests, ...limits }, life, later, log, telemetry, tables);
  let letIn: (() => void)[] = [];
  const clients: Client[] = [];
  doors(app);
  await app.register(async (scope) => {
    if (accounts === null) lookUpByName(scope, (done) => letIn.push(done));
    else {
      const clock = createSystemClock();
      requireServiceKey(scope, { accounts, tables, clock, bodies: life.bodies, httpTelemetry: telemetry });
    }
    routes(scope);
  });
  await app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = app.server.address() as AddressInfo;
  return {
    app,
    life,
    shed,
    stalled,
    ended,
    logged,
    letIn: () => {
      const waiting = letIn;
      letIn = [];
      for (const done of waiting) done();
    },
    connect: (...parts) => {
      const client = connectTo(port, parts);
      clients.push(client);
      return client;
    },
    close: async () => {
      for (const { socket } of clients) socket.destroy();
      app.server.closeAllConnections();
      await app.close();
    },
  };
}

/** A request's head, the blank line included. */
export function head(fields: Readonly<Record<string, string | number>>, target = 'POST /echo'): string {
  const all = { host: 'x', 'content-type': 'application/json', ...fields };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}`);
  return `${target} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`;
}

/** Bytes as one HTTP chunk, or as chunks of `size`. */
export function chunked(bytes: Buffer, size = bytes.length): Buffer {
  const parts: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += size) {
    const part = bytes.subarray(at, at + size);
    parts.push(Buffer.from(`${part.length.toString(16)}\r\n`), part, Buffer.from('\r\n'));
  }
  return Buffer.concat(parts);
}

export const lastChunk = '0\r\n\r\n';

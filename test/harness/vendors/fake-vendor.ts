import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { answer } from './vendor-plans.ts';
import type { Dialect, ReceivedRequest, Reply, Script } from './vendor-reply.ts';
import { toBuffer } from './vendor-reply.ts';

/**
 * An HTTP server that speaks the wire of OpenAI-shaped vendors and of Anthropic. A request is answered by
 * the first rule that matches it, else by the head of the queue, else by the standing script.
 */
export interface FakeVendor {
  /** Origin without a trailing slash. */
  readonly url: string;
  /** Every request received, oldest first. */
  readonly ledger: ReceivedRequest[];
  /** Adds one-time scripts to the queue. */
  script(...scripts: Script[]): void;
  /** What is done when no rule matches and the queue is empty; a healthy answer at first. */
  always(script: Script): void;
  /** A standing rule: `marker` is searched in the model name and in the last user message. */
  when(marker: string, script: Script): void;
  /** Forgets scripts, rules and the ledger. */
  clear(): void;
  /** Resolves with the ledger entry `index` as soon as it exists. */
  received(index: number): Promise<ReceivedRequest>;
  /** Sockets open right now. */
  openSockets(): number;
  /** Ends every socket politely (FIN), as a server does whose keep-alive time is over. */
  endSockets(): void;
  close(): Promise<void>;
}

const chatPaths = new Set(['/v1/chat/completions', '/v2/chat/completions', '/chat/completions']);

/** Null for what no vendor is asked: POST to a chat path, GET of the models. */
function dialectOf(method: string | undefined, path: string): Dialect | null {
  if (method === 'GET') return path.endsWith('/models') ? 'openai' : null;
  if (method !== 'POST') return null;
  if (path.endsWith('/v1/messages')) return 'anthropic';
  return [...chatPaths].some((known) => path.endsWith(known)) ? 'openai' : null;
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}

function parseObject(text: string): Record<string, unknown> {
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return {};
  }
}

interface OpenRequest {
  readonly entry: ReceivedRequest;
  settle(closedEarly: boolean): void;
}

function openRequest(
  request: IncomingMessage,
  path: string,
  dialect: Dialect,
  bodyText: string,
): OpenRequest {
  const body = parseObject(bodyText);
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const entry: ReceivedRequest = {
    method: request.method ?? '',
    path,
    headers: request.headers,
    bodyText,
    body,
    dialect,
    stream: body['stream'] === true,
    receivedAtMs: performance.now(),
    bytesSent: 0,
    finished: false,
    peerClosedAtMs: null,
    closedEarly: promise,
  };
  return { entry, settle: resolve };
}

/** Resolves on drain or close, so that a writer never outruns its reader. */
function drained(target: Socket | ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      target.off('drain', done);
      target.off('close', done);
      resolve();
    };
    target.on('drain', done);
    target.on('close', done);
  });
}

async function writeBody(
  reply: Reply,
  target: Socket | ServerResponse,
  entry: ReceivedRequest,
): Promise<void> {
  for (const step of reply.body) {
    if (target.destroyed) return;
    if (typeof step === 'object' && 'waitMs' in step) {
      await new Promise((resolve) => setTimeout(resolve, step.waitMs));
    } else if (typeof step === 'object' && 'opened' in step) {
      await step.opened;
    } else {
      const bytes = toBuffer(step);
      const room = target.write(bytes);
      entry.bytesSent += bytes.length;
      if (!room) await drained(target);
    }
  }
}

async function play(
  reply: Reply,
  request: IncomingMessage,
  response: ServerResponse,
  entry: ReceivedRequest,
) {
  const socket = request.socket;
  socket.setNoDelay(true);
  const target = reply.raw === true ? socket : response;
  await reply.before?.opened;
  if (socket.destroyed) return;
  if (reply.status !== null) {
    response.writeHead(reply.status, reply.headers);
    response.flushHeaders();
  }
  await writeBody(reply, target, entry);
  if (socket.destroyed || reply.ending === 'hang') return;
  entry.finished = true;
  if (reply.ending === 'complete') response.end();
  else if (reply.ending === 'fin') socket.end();
  else {
    // What was written before the reset must reach the peer: RST discards unsent bytes.
    await new Promise((resolve) => setImmediate(resolve));
    socket.resetAndDestroy();
  }
}

class Scripts {
  #queue: Script[] = [];
  #rules: { marker: string; script: Script }[] = [];
  #standing: Script = answer();

  add(scripts: Script[]): void {
    this.#queue.push(...scripts);
  }

  stand(script: Script): void {
    this.#standing = script;
  }

  rule(marker: string, script: Script): void {
    this.#rules.unshift({ marker, script });
  }

  clear(): void {
    this.#queue = [];
    this.#rules = [];
    this.#standing = answer();
  }

  pick(entry: ReceivedRequest): Script {
    const messages = (entry.body['messages'] ?? []) as { role?: string; content?: unknown }[];
    const last = messages.findLast((message) => message.role === 'user');
    const text = `${String(entry.body['model'])}\n${JSON.stringify(last?.content ?? '')}`;
    const rule = this.#rules.find(({ marker }) => text.includes(marker));
    return rule?.script ?? this.#queue.shift() ?? this.#standing;
  }
}

/** Starts a fake vendor on a free port of 127.0.0.1. */
export async function startFakeVendor(): Promise<FakeVendor> {
  const ledger: ReceivedRequest[] = [];
  const waiting: { index: number; resolve: (entry: ReceivedRequest) => void }[] = [];
  const scripts = new Scripts();
  const sockets = new Set<Socket>();

  const server = createServer((request, response) => {
    void (async () => {
      const path = request.url ?? '';
      const dialect = dialectOf(request.method, path.split('?')[0] ?? '');
      const text = await readBody(request).catch(() => null);
      if (text === null) return;
      if (dialect === null) {
        response
          .writeHead(404, { 'content-type': 'application/json' })
          .end('{"error":{"message":"no route"}}');
        return;
      }
      const { entry, settle } = openRequest(request, path, dialect, text);
      response.on('close', () => {
        if (!entry.finished) entry.peerClosedAtMs = performance.now();
        settle(!entry.finished);
      });
      ledger.push(entry);
      for (const waiter of waiting.splice(0)) {
        const found = ledger[waiter.index];
        if (found === undefined) waiting.push(waiter);
        else waiter.resolve(found);
      }
      await play(scripts.pick(entry)(entry), request, response, entry);
    })();
  });
  server.keepAliveTimeout = 60_000;
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    ledger,
    script: (...added) => scripts.add(added),
    always: (script) => scripts.stand(script),
    when: (marker, script) => scripts.rule(marker, script),
    clear: () => {
      scripts.clear();
      ledger.length = 0;
    },
    received: (index) => {
      const found = ledger[index];
      if (found !== undefined) return Promise.resolve(found);
      return new Promise((resolve) => waiting.push({ index, resolve }));
    },
    openSockets: () => sockets.size,
    endSockets: () => {
      for (const socket of sockets) socket.end();
    },
    close: async () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

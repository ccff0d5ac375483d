import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { DemoAnswer, DemoRequest } from './demo-answer.ts';
import { composeDemoAnswer, readDemoRequest } from './demo-answer.ts';

export interface DemoServerOptions {
  readonly host: string;
  /** 0: any free one. */
  readonly port: number;
  /** Pause between two streamed words; the default reads comfortably. */
  readonly wordDelayMs?: number;
}

export interface DemoServer {
  /** Origin without a path, as a self_hosted `base_url` wants it. */
  readonly url: string;
  /** Cuts open streams. */
  close(): Promise<void>;
}

const defaultWordDelayMs = 40;
/** The gateway's own limit is 20 MiB, so nothing it forwards is refused here. */
const maxBodyBytes = 32 * 1024 * 1024;
const demoModel = { id: 'demo', object: 'model', created: 1_767_225_600, owned_by: 'model-gateway' } as const;

/**
 * A model server in the OpenAI Chat Completions shape (JSON, SSE and /v1/models) that needs no model.
 * It takes any key. Rejects with the listen error (EADDRINUSE, say).
 */
export async function startDemoServer(options: DemoServerOptions): Promise<DemoServer> {
  const wordDelayMs = options.wordDelayMs ?? defaultWordDelayMs;
  const server = createServer((request, response) => {
    route(request, response, wordDelayMs).catch(() => response.destroy());
  });
  server.listen({ host: options.host, port: options.port });
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const host = options.host.includes(':') ? `[${options.host}]` : options.host;
  return {
    url: `http://${host}:${port}`,
    async close() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

async function route(request: IncomingMessage, response: ServerResponse, wordDelayMs: number): Promise<void> {
  const { pathname } = new URL(request.url ?? '/', 'http://demo');
  if (request.method === 'GET' && pathname === '/v1/models') {
    sendJson(response, 200, { object: 'list', data: [demoModel] });
  } else if (request.method === 'POST' && pathname === '/v1/chat/completions') {
    await complete(request, response, wordDelayMs);
  } else {
    sendError(response, 404, `No route ${request.method} ${pathname}.`);
  }
}

async function complete(
  request: IncomingMessage,
  response: ServerResponse,
  wordDelayMs: number,
): Promise<void> {
  const body = await parsedBody(request);
  if (body === null) return sendError(response, 413, 'The body is too large.');
  const wanted = readDemoRequest(body);
  if (wanted === null) return sendError(response, 400, 'The body must be JSON with an array of messages.');
  const answer = composeDemoAnswer(wanted);
  const head = {
    id: `chatcmpl-${randomUUID()}`,
    created: Math.floor(Date.now() / 1000),
    model: wanted.model,
  };
  if (wanted.stream) return stream(response, wanted, answer, head, wordDelayMs);
  sendJson(response, 200, {
    ...head,
    object: 'chat.completion',
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: answer.words.join('') },
        finish_reason: answer.finishReason,
      },
    ],
    usage: answer.usage,
  });
}

async function stream(
  response: ServerResponse,
  wanted: DemoRequest,
  answer: DemoAnswer,
  head: object,
  wordDelayMs: number,
): Promise<void> {
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
  const send = (choices: unknown[], more: object = {}) => {
    const chunk = { ...head, object: 'chat.completion.chunk', choices, ...more };
    response.write(`data: ${JSON.stringify(chunk)}\n\n`);
  };
  const choice = (delta: object, finishReason: string | null = null) => [
    { index: 0, delta, finish_reason: finishReason },
  ];
  send(choice({ role: 'assistant', content: '' }));
  for (const word of answer.words) {
    send(choice({ content: word }));
    if (wordDelayMs > 0) await delay(wordDelayMs, undefined, { signal: gone.signal });
  }
  send(choice({}, answer.finishReason));
  if (wanted.streamUsage) send([], { usage: answer.usage });
  response.end('data: [DONE]\n\n');
}

/** The parsed body, undefined when it is no JSON, null when it is too large. */
async function parsedBody(request: IncomingMessage): Promise<unknown> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of request) {
    bytes += (part as Buffer).length;
    if (bytes > maxBodyBytes) return null;
    parts.push(part as Buffer);
  }
  try {
    return JSON.parse(Buffer.concat(parts).toString('utf8')) ?? undefined;
  } catch {
    return undefined;
  }
}

function sendError(response: ServerResponse, status: number, message: string): void {
  sendJson(response, status, { error: { message, type: 'invalid_request_error', param: null, code: null } });
}

function sendJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}

import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Shape } from './answers.ts';
import { shapeAt } from './answers.ts';

/** The vendor's side of one request. */
export interface Wire {
  /** What is spoken here. */
  readonly shape: Shape;
  head(status: number, headers: Readonly<Record<string, string>>): void;
  write(text: string): void;
  /** Resolves when the peer has room again, or is gone. */
  writeSlowly(text: string): Promise<void>;
  end(): void;
  reset(): void;
  answer(status: number, headers: Readonly<Record<string, string>>, body: string): void;
  isOpen(): boolean;
}

type Play = (wire: Wire) => void | Promise<void>;

/** One call as the vendor received it. */
export interface Call {
  /** First segment of the path: `openai` where GW_OPENAI_BASE_URL ends in /openai. */
  readonly vendor: string;
  /** Which request this is part of. */
  readonly nonce: string;
}

export interface CrashVendor {
  readonly port: number;
  /** Calls with this nonce, in order of arrival. */
  calls(nonce: string): readonly Call[];
  /** What the vendor does that is called first for a nonce; the others are healthy. */
  plan(nonce: string, play: Play): void;
  /** What a vendor does whatever it is asked, until it is undefined again. */
  outage(vendor: string, play: Play | undefined): void;
  close(): Promise<void>;
}

/** In the prompt, since it is the one part of a request that reaches every vendor unchanged. */
export function prompt(nonce: string): string {
  return `crash-test:${nonce}:`;
}

const nonceInPrompt = /crash-test:([0-9a-f-]+):/;

async function readBody(request: IncomingMessage): Promise<string> {
  let text = '';
  for await (const bytes of request) text += (bytes as Buffer).toString('utf8');
  return text;
}

function wireOf(response: ServerResponse, shape: Shape): Wire {
  const isOpen = () => !response.destroyed;
  const { socket } = response;
  const drained = () =>
    new Promise<void>((resolve) => {
      const done = () => {
        response.off('drain', done).off('close', done);
        resolve();
      };
      response.on('drain', done).on('close', done);
    });
  return {
    shape,
    head: (status, headers) => {
      response.writeHead(status, headers).flushHeaders();
    },
    write: (text) => {
      response.write(text);
    },
    writeSlowly: async (text) => {
      if (!response.write(text) && isOpen()) await drained();
    },
    end: () => {
      response.end();
    },
    reset: () => {
      socket?.resetAndDestroy();
    },
    answer: (status, headers, body) => {
      response.writeHead(status, headers).end(body);
    },
    isOpen,
  };
}

/** Answers as a healthy vendor does. */
function healthy(wire: Wire, body: string): void {
  const { shape } = wire;
  if (/"stream":\s*true/.test(body))
    wire.answer(200, { 'content-type': 'text/event-stream' }, shape.events.join(''));
  else wire.answer(200, { 'content-type': 'application/json' }, shape.json());
}

/** Starts the vendor on all interfaces; port 0 takes a free one. Rejects when the port is taken. */
export async function startVendor(port: number): Promise<CrashVendor> {
  const calls = new Map<string, Call[]>();
  const plans = new Map<string, Play>();
  const outages = new Map<string, Play>();
  const server = createServer((request, response) => {
    void serve(request, response).catch(() => response.destroy());
  });
  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = request.url ?? '';
    const body = await readBody(request);
    const nonce = nonceInPrompt.exec(body)?.[1] ?? '';
    const vendor = path.split('/')[1] ?? '';
    const known = calls.get(nonce) ?? [];
    calls.set(nonce, [...known, { vendor, nonce }]);
    const isFirst = known.every((call) => call.vendor === vendor);
    const play = outages.get(vendor) ?? (isFirst ? plans.get(nonce) : undefined);
    const wire = wireOf(response, shapeAt(path));
    if (play === undefined) healthy(wire, body);
    else await play(wire);
  }
  // Longer than a run: no answer is lost to a connection that is just being closed.
  server.keepAliveTimeout = 600_000;
  server.on('connection', (socket) => {
    socket.setNoDelay(true);
    socket.on('error', () => {});
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    calls: (nonce) => calls.get(nonce) ?? [],
    plan: (nonce, play) => {
      plans.set(nonce, play);
    },
    outage: (vendor, play) => {
      if (play === undefined) outages.delete(vendor);
      else outages.set(vendor, play);
    },
    close: async () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
    },
  };
}

import { setTimeout as delay } from 'node:timers/promises';
import { ClientConnection } from './client-connection.ts';
import { serveParent } from './worker.ts';
import { jsonRequest, streamRequest } from './workload.ts';

/** The clients: a closed loop, each connection sends its next request when it has the whole answer. */

/** What is sent, and where. */
interface Sending {
  /** Each connection is one's of these, in turn. */
  readonly urls: readonly string[];
  readonly headers: Readonly<Record<string, string>>;
  readonly stream: boolean;
}

/** Requests until `count` answers or `ms` are over, whichever is asked for; answered with a `LoopResult`. */
export interface LoopOrder extends Sending {
  readonly kind: 'loop';
  readonly connections: number;
  readonly count?: number;
  readonly ms?: number;
  /** Between an answer and the next request of a connection; 0 by default. */
  readonly pauseMs?: number;
  /** Up to where an answer is timed: its end, or its first token, which is in the second event of a stream. */
  readonly until: 'end' | 'first token';
}

/** Opens `count` streams; answered when each has had its first event. */
interface HoldOrder extends Sending {
  readonly kind: 'hold';
  readonly count: number;
}

export type LoadOrder = LoopOrder | HoldOrder | { readonly kind: 'release' };

export interface LoopResult {
  readonly count: number;
  /** Median time of an answer, up to where it is timed, in ms. */
  readonly p50: number;
}

/** Spreads the beginnings of paced streams, so that their events do not come in step. */
const SPREAD_MS = 20;
/** Streams that are opened at the same time when many are held. */
const OPENING = 50;

/** By address and number: those of a target stay open between its slices. */
const connections = new Map<string, readonly ClientConnection[]>();

/** The bytes of a request, as a client writes them. */
function requestOf({ stream, headers }: Sending, url: string): Buffer {
  const body = stream ? streamRequest : jsonRequest;
  const fields = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: ${new URL(url).host}\r\n${fields.join('')}`;
  return Buffer.concat([Buffer.from(`${head}content-length: ${body.length}\r\n\r\n`), body]);
}

interface Client {
  readonly connection: ClientConnection;
  readonly request: Buffer;
}

/** As many clients as are asked for, shared out among the addresses. */
function clientsOf(order: Sending, count: number): Client[] {
  const requests = order.urls.map((url) => requestOf(order, url));
  return connectionsTo(order.urls, count).map((connection, index) => ({
    connection,
    request: requests[index % requests.length] as Buffer,
  }));
}

function connectionsTo(urls: readonly string[], count: number): readonly ClientConnection[] {
  const name = `${urls.join(' ')} ${count}`;
  const opened =
    connections.get(name) ??
    Array.from({ length: count }, (_, index) => new ClientConnection(urls[index % urls.length] as string));
  connections.set(name, opened);
  return opened;
}

async function runLoop(order: LoopOrder): Promise<LoopResult> {
  const { pauseMs = 0 } = order;
  const end = performance.now() + (order.ms ?? Number.POSITIVE_INFINITY);
  const times: number[] = [];
  let begun = 0;
  const run = async ({ connection, request }: Client) => {
    if (order.stream) await delay(Math.random() * SPREAD_MS);
    while (performance.now() < end && begun < (order.count ?? Number.POSITIVE_INFINITY)) {
      begun += 1;
      const start = performance.now();
      let firstMs = 0;
      await connection.exchange(request, (events) => {
        if (events > 1) firstMs ||= performance.now();
      });
      times.push((order.until === 'end' ? performance.now() : firstMs) - start);
      if (pauseMs > 0) await delay(pauseMs);
    }
  };
  await Promise.all(clientsOf(order, order.connections).map(run));
  times.sort((a, b) => a - b);
  return { count: times.length, p50: times[times.length >> 1] ?? Number.NaN };
}

async function hold(order: HoldOrder): Promise<void> {
  const clients = clientsOf(order, order.count);
  for (let open = 0; open < order.count; open += OPENING) {
    await Promise.all(clients.slice(open, open + OPENING).map(holdOne));
  }
}

/** Resolves with the first event. */
function holdOne({ connection, request }: Client): Promise<void> {
  return new Promise((resolve, reject) => {
    connection
      .exchange(request, (events) => {
        if (events > 0) resolve();
      })
      .then(() => reject(new Error('a held stream ended')), reject);
  });
}

async function obey(order: LoadOrder): Promise<LoopResult | null> {
  if (order.kind === 'loop') return runLoop(order);
  if (order.kind === 'hold') await hold(order);
  else for (const connection of [...connections.values()].flat()) connection.close();
  return null;
}

serveParent(null, obey);

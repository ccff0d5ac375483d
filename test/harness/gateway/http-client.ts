import { connect } from 'node:net';
import type { Dispatcher } from 'undici';
import { Agent, request as send } from 'undici';
import { SseReader } from './sse-reader.ts';

type Headers = Readonly<Record<string, string | string[] | undefined>>;

export interface HttpResponse {
  readonly status: number;
  /** Lower case names. */
  readonly headers: Headers;
  readonly text: string;
  /** The body as JSON of the shape the test expects; throws when it is no JSON. */
  json<T>(): T;
}

export interface RequestOptions {
  readonly headers?: Readonly<Record<string, string>>;
  /** A string or bytes go as they are, anything else as JSON. */
  readonly body?: unknown;
  readonly signal?: AbortSignal;
}

/** Calls one gateway, as one user when made with a service key. */
export interface HttpClient {
  readonly url: string;
  request(method: string, path: string, options?: RequestOptions): Promise<HttpResponse>;
  get(path: string, headers?: Readonly<Record<string, string>>): Promise<HttpResponse>;
  post(path: string, body: unknown, headers?: Readonly<Record<string, string>>): Promise<HttpResponse>;
  delete(path: string): Promise<HttpResponse>;
  /** Opens a response and hands its events out one by one. */
  stream(path: string, body: unknown, headers?: Readonly<Record<string, string>>): Promise<SseReader>;
}

const agent = new Agent({ connections: 256, headersTimeout: 60_000, bodyTimeout: 60_000, pipelining: 1 });

function encode(
  options: RequestOptions,
  key: string | null,
): {
  headers: Record<string, string>;
  body: string | Buffer | null;
} {
  const raw = typeof options.body === 'string' || Buffer.isBuffer(options.body);
  const headers: Record<string, string> = {
    ...(key === null ? {} : { authorization: `Bearer ${key}` }),
    ...(options.body === undefined ? {} : { 'content-type': 'application/json' }),
    ...options.headers,
  };
  if (options.body === undefined) return { headers, body: null };
  return { headers, body: raw ? (options.body as string | Buffer) : JSON.stringify(options.body) };
}

async function open(url: string, method: string, options: RequestOptions, key: string | null) {
  return send(url, {
    method: method as Dispatcher.HttpMethod,
    ...encode(options, key),
    dispatcher: agent,
    ...(options.signal === undefined ? {} : { signal: options.signal }),
  });
}

/** A client of the gateway at `url`; `key` is sent as the service key. */
export function httpClient(url: string, key: string | null = null): HttpClient {
  const request = async (
    method: string,
    path: string,
    options: RequestOptions = {},
  ): Promise<HttpResponse> => {
    const response = await open(url + path, method, options, key);
    const text = await response.body.text();
    return {
      status: response.statusCode,
      headers: response.headers,
      text,
      json: <T>() => JSON.parse(text) as T,
    };
  };
  return {
    url,
    request,
    get: (path, headers = {}) => request('GET', path, { headers }),
    post: (path, body, headers = {}) => request('POST', path, { headers, body }),
    delete: (path) => request('DELETE', path),
    stream: async (path, body, headers = {}) => {
      const response = await open(url + path, 'POST', { headers, body }, key);
      return new SseReader(response.statusCode, response.headers, response.body);
    },
  };
}

/** What came back on a raw socket, and whether the server closed it. */
export interface RawExchange {
  readonly text: string;
  readonly closed: boolean;
  /** Status of each response, in order. */
  readonly statuses: number[];
}

export interface RawOptions {
  /** Bytes to send one after the other, each in its own write. */
  readonly parts: readonly (string | Buffer)[];
  /** Stop waiting when this returns true; default: when the server closed. */
  readonly until?: (text: string) => boolean;
  /** Counted in turns of this process: no patience is used up while the machine stands still. */
  readonly limitMs?: number;
}

const turnMs = 50;

/** Sends bytes as they are and collects the answer: for requests that no proper client would write. */
export function sendRaw(url: string, options: RawOptions): Promise<RawExchange> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    let text = '';
    const socket = connect(Number(port), hostname);
    socket.setNoDelay(true);
    const finish = (closed: boolean) => {
      clearInterval(timer);
      socket.destroy();
      const statuses = [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map((match) => Number(match[1]));
      resolve({ text, closed, statuses });
    };
    let turnsLeft = (options.limitMs ?? 5_000) / turnMs;
    const timer = setInterval(() => {
      turnsLeft -= 1;
      if (turnsLeft <= 0) finish(false);
    }, turnMs);
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1');
      if (options.until?.(text) === true) finish(false);
    });
    socket.on('error', () => {});
    socket.on('close', () => finish(true));
    socket.on('connect', () => {
      for (const part of options.parts) socket.write(part);
    });
  });
}

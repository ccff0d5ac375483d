import type { ClientRequest, IncomingMessage, RequestOptions } from 'node:http';
import { request as overHttp } from 'node:http';
import { request as overHttps } from 'node:https';
import { connect } from 'node:net';

/** The deployment under test, and the account that it is tested with. */
export interface Gateway {
  /** Without a trailing slash. */
  readonly url: string;
  /** A service key. */
  readonly key: string;
}

export interface Answer {
  /** Null: none came. */
  readonly status: number | null;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** What came of the body. */
  readonly text: string;
  /** The HTTP response came to its end. False: the connection broke, or we gave up. */
  readonly ended: boolean;
  /** We gave up after the limit. */
  readonly gaveUp: boolean;
  readonly tookMs: number;
}

export interface Sending {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** When to give up, milliseconds. */
  readonly limitMs: number;
}

/** Sends one request on a connection of its own and notes what came of it; never rejects. */
export function send(gateway: Gateway, path: string, sending: Sending): Promise<Answer> {
  const startedAtMs = performance.now();
  return new Promise((resolve) => {
    let response: IncomingMessage | null = null;
    let text = '';
    let gaveUp = false;
    const finish = () => {
      clearTimeout(timer);
      resolve({
        status: response?.statusCode ?? null,
        headers: response?.headers ?? {},
        text,
        ended: response?.complete === true,
        gaveUp,
        tookMs: performance.now() - startedAtMs,
      });
    };
    const request = open(gateway, path, sending);
    const timer = setTimeout(() => {
      gaveUp = true;
      request.destroy();
      finish();
    }, sending.limitMs);
    request.on('error', finish);
    request.on('response', (incoming) => {
      response = incoming;
      incoming.setEncoding('utf8');
      incoming.on('data', (piece: string) => {
        text += piece;
      });
      incoming.on('error', () => {});
      incoming.on('close', finish);
    });
    request.end(sending.body === undefined ? undefined : JSON.stringify(sending.body));
  });
}

function open(gateway: Gateway, path: string, sending: Sending): ClientRequest {
  const url = new URL(gateway.url + path);
  const headers = {
    authorization: `Bearer ${gateway.key}`,
    ...(sending.body === undefined ? {} : { 'content-type': 'application/json' }),
    ...sending.headers,
  };
  const options: RequestOptions = { method: sending.method ?? 'POST', headers, agent: false };
  return url.protocol === 'https:' ? overHttps(url, options) : overHttp(url, options);
}

/** The address of this machine as the gateway's network knows it: that of a connection to the gateway. */
export function ownAddress(gatewayUrl: string): Promise<string> {
  const url = new URL(gatewayUrl);
  const port = Number(url.port) || (url.protocol === 'https:' ? 443 : 80);
  return new Promise((resolve, reject) => {
    const socket = connect(port, url.hostname.replace(/^\[|\]$/g, ''));
    socket.once('error', reject);
    socket.once('connect', () => {
      const { localAddress = '127.0.0.1' } = socket;
      socket.destroy();
      resolve(localAddress.replace(/^::ffff:/, ''));
    });
  });
}

import { expect } from 'vitest';
import { eventually } from '../measure/eventually.ts';
import type { Completion, GatewayBlock, LogPage, LogRowBody } from '../vendors/wire-types.ts';
import { answeredInTime } from './answered-in-time.ts';
import type { HttpClient, HttpResponse } from './http-client.ts';
import type { ReadStream } from './sse-reader.ts';
import { takeApart } from './sse-reader.ts';

export const chatPath = '/v1/chat/completions';

/** The smallest valid body, with additions; an addition of `undefined` removes a field. */
export function chatBody(additions: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  return { model: 'gw/balanced', messages: [{ role: 'user', content: 'Say hello.' }], ...additions };
}

export function chat(
  client: HttpClient,
  additions: Readonly<Record<string, unknown>> = {},
  headers: Readonly<Record<string, string>> = {},
): Promise<HttpResponse> {
  return client.post(chatPath, chatBody(additions), headers);
}

/** A chat that must succeed. */
export async function chatOk(
  client: HttpClient,
  additions: Readonly<Record<string, unknown>> = {},
  headers: Readonly<Record<string, string>> = {},
): Promise<Completion> {
  const response = await chat(client, additions, headers);
  expect(response.status, response.text).toBe(200);
  return response.json<Completion>();
}

/** A stream read to its end. */
export async function streamed(
  client: HttpClient,
  additions: Readonly<Record<string, unknown>> = {},
  headers: Readonly<Record<string, string>> = {},
): Promise<
  ReadStream & { status: number; headers: Readonly<Record<string, string | string[] | undefined>> }
> {
  const reader = await client.stream(chatPath, chatBody({ stream: true, ...additions }), headers);
  if (reader.status !== 200) throw new Error(`stream: ${reader.status} ${await reader.text()}`);
  return { ...takeApart(await reader.rest()), status: reader.status, headers: reader.headers };
}

/** All that a `gateway` block says, in alphabetical order. */
export const gatewayFields = [
  'cache_hit',
  'cost_usd',
  'latency_ms',
  'mode',
  'model',
  'provider',
  'request_id',
  'residency_actual',
];

/** The `gateway` block of a finished stream; fails unless there is exactly one. */
export function gatewayOf(stream: ReadStream): GatewayBlock {
  expect(stream.gatewayChunks).toHaveLength(1);
  return stream.gatewayChunks[0]?.choices?.[0]?.delta['gateway'] as GatewayBlock;
}

/**
 * The caller's log rows as they stand, newest first: at most 1000. Asked again while Postgres is too slow for the
 * gateway, which on a busy machine it may be.
 */
export async function logRows(client: HttpClient): Promise<readonly LogRowBody[]> {
  const response = await answeredInTime(() => client.get('/v1/logs?limit=1000'));
  expect(response.status, response.text).toBe(200);
  return response.json<LogPage>().data;
}

/**
 * The caller's log rows once there are `count` of them. An answer waits 50 ms at most for its row to be
 * committed; on a busy machine the row may take the detour over the local spool.
 */
export function logRowsOnceThere(client: HttpClient, count: number): Promise<readonly LogRowBody[]> {
  return eventually(async () => {
    const rows = await logRows(client);
    return rows.length >= count ? rows : undefined;
  });
}

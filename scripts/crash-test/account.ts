import { randomBytes } from 'node:crypto';
import type { Gateway } from './client.ts';
import { send } from './client.ts';

/** How long a call that is no chat may take. */
const callLimitMs = 15_000;

/** Tells an operator what to do; no stack is of use. */
export class CrashTestError extends Error {}

export interface ModelKey {
  readonly id: string;
  readonly label: string;
}

/** What the log knows of one chat. */
export interface Row {
  readonly model: string;
  readonly status: string;
}

async function call(gateway: Gateway, method: string, path: string, body?: unknown): Promise<unknown> {
  const sending = { method, limitMs: callLimitMs, ...(body === undefined ? {} : { body }) };
  const { status, text } = await send(gateway, path, sending);
  if (status === null) throw new CrashTestError(`${gateway.url} does not answer.`);
  if (status === 401) throw new CrashTestError('The service key is refused.');
  if (status >= 300) throw new CrashTestError(`${method} ${path} answers ${status}: ${text.slice(0, 500)}`);
  return text === '' ? null : (JSON.parse(text) as unknown);
}

/** Registers the address of a model server of ours for the account. */
export async function addSelfHosted(gateway: Gateway, baseUrl: string): Promise<ModelKey> {
  const label = `crash-test-${randomBytes(4).toString('hex')}`;
  const body = {
    provider: 'self_hosted',
    api_key: 'crash-test',
    base_url: baseUrl,
    declared_region: 'test',
    label,
  };
  const { id } = (await call(gateway, 'POST', '/v1/keys', body)) as { id: string };
  return { id, label };
}

/** Registers keys for the vendors that the account has none of; their ids. */
export async function addVendorKeys(gateway: Gateway, vendors: readonly string[]): Promise<string[]> {
  const held = (await call(gateway, 'GET', '/v1/keys')) as { provider: string }[];
  const missing = vendors.filter((vendor) => !held.some(({ provider }) => provider === vendor));
  const ids: string[] = [];
  for (const provider of missing) {
    const body = { provider, api_key: 'crash-test' };
    ids.push(((await call(gateway, 'POST', '/v1/keys', body)) as { id: string }).id);
  }
  return ids;
}

export async function deleteKey(gateway: Gateway, id: string): Promise<void> {
  await call(gateway, 'DELETE', `/v1/keys/${id}`);
}

/** The account's log rows since an instant. */
export async function rowsSince(gateway: Gateway, since: Date): Promise<Row[]> {
  const rows: Row[] = [];
  for (let cursor: string | null = ''; cursor !== null; ) {
    const query = new URLSearchParams({ since: since.toISOString(), limit: '1000' });
    if (cursor !== '') query.set('cursor', cursor);
    const page = (await call(gateway, 'GET', `/v1/logs?${query}`)) as {
      data: Row[];
      next_cursor: string | null;
    };
    rows.push(...page.data);
    cursor = page.next_cursor;
  }
  return rows;
}

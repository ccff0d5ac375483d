import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { Dispatcher } from 'undici';
import { request as call } from 'undici';

/** What a client does, and what its prompt makes the vendor do. */
export interface Kind {
  readonly name: string;
  /** Of all requests, in relation to the others. */
  readonly share: number;
  readonly stream?: boolean;
  /** A word in the prompt by which the vendor knows its part. */
  readonly say?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Readonly<Record<string, unknown>>;
  readonly client?: 'leaves-early' | 'leaves-late' | 'reads-slowly';
}

/** Different prompts of cached requests: the cache fills up to these and stays. */
const cachedPrompts = 20;
const slowReadMs = 40;
/** A client that leaves before an answer waits this long. */
const leavesAfterMs = 15;

const impatient = { 'x-gateway-timeout': '1' };

/** The mixture; names are those of the table. */
export const kinds: readonly Kind[] = [
  { name: 'JSON', share: 40 },
  { name: 'stream', share: 25, stream: true },
  { name: 'cached', share: 12, headers: { 'x-gateway-cache': 'true' } },
  { name: 'cached stream', share: 4, stream: true, headers: { 'x-gateway-cache': 'true' } },
  { name: 'vendor 500', share: 2, say: 'vendor-500' },
  { name: 'vendor 429', share: 2, say: 'vendor-429' },
  { name: 'vendor resets', share: 2, say: 'vendor-resets' },
  { name: 'vendor cuts stream', share: 2, stream: true, say: 'vendor-cuts' },
  { name: 'vendor sends HTML', share: 1, say: 'vendor-html' },
  { name: 'vendor hangs', share: 1, say: 'vendor-hangs', headers: impatient },
  { name: 'vendor stalls', share: 1, stream: true, say: 'vendor-stalls' },
  { name: 'refused body', share: 2, body: { temperature: 'hot' } },
  { name: 'client leaves early', share: 2, client: 'leaves-early', say: 'vendor-waits' },
  { name: 'client leaves stream', share: 2, stream: true, client: 'leaves-late', say: 'vendor-talks' },
  { name: 'client reads slowly', share: 2, stream: true, client: 'reads-slowly', say: 'vendor-talks' },
];

const totalShare = kinds.reduce((sum, { share }) => sum + share, 0);

/** The kind of the request of this number: all kinds mixed evenly, the same in each run. */
export function kindOf(index: number): Kind {
  // A stride without a common factor with the sum visits every place once per round.
  let place = (index * 37) % totalShare;
  for (const kind of kinds) {
    place -= kind.share;
    if (place < 0) return kind;
  }
  throw new RangeError('the shares do not add up');
}

/** One request as its client saw it. */
export interface Ended {
  readonly id: string;
  readonly kind: string;
  /** Null: the client left, or no answer came. */
  readonly status: number | null;
  /** The last byte came. */
  readonly whole: boolean;
}

function promptOf(kind: Kind, index: number, id: string): string {
  if (kind.headers?.['x-gateway-cache'] === 'true') return `cached ${index % cachedPrompts}`;
  return `request ${id} ${kind.say ?? ''}`;
}

/** Sends one request and plays its client's part; never rejects. */
export async function sendOne(
  url: string,
  key: string,
  index: number,
  dispatcher: Dispatcher,
): Promise<Ended> {
  const kind = kindOf(index);
  const id = randomUUID();
  const leaving = new AbortController();
  let status: number | null = null;
  let text = '';
  try {
    if (kind.client === 'leaves-early') setTimeout(() => leaving.abort(), leavesAfterMs);
    const messages = [{ role: 'user', content: promptOf(kind, index, id) }];
    const response = await call(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${key}`,
        'content-type': 'application/json',
        'x-request-id': id,
        ...kind.headers,
      },
      body: JSON.stringify({ model: 'gw/cheap', stream: kind.stream ?? false, messages, ...kind.body }),
      dispatcher,
      signal: leaving.signal,
    });
    status = response.statusCode;
    for await (const piece of response.body) {
      text = (text + (piece as Buffer).toString('utf8')).slice(-100);
      if (kind.client === 'leaves-late') leaving.abort();
      if (kind.client === 'reads-slowly') await pause(slowReadMs);
    }
  } catch {
    return { id, kind: kind.name, status, whole: false };
  }
  const whole = kind.stream !== true || status !== 200 || text.endsWith('data: [DONE]\n\n');
  return { id, kind: kind.name, status, whole };
}

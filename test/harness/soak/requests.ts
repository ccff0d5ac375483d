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
  /** How it may end, as `endOf` says it; a whole 200 where nothing else is said. */
  readonly ends?: readonly string[];
}

/** Different prompts of cached requests: the cache fills up to these and stays. */
const cachedPrompts = 20;
const slowReadMs = 40;
/** A client that leaves before an answer waits this long. */
const leavesAfterMs = 15;

const impatient = { 'x-gateway-timeout': '1' };

/** Its latency is judged: the vendor answers at once, so that what it takes is the gateway's. */
export const plain: Kind = { name: 'JSON', share: 40 };
/** Asked while the tables of the gateway are another version, once each. */
export const afterReload: Kind = { name: 'after a reload', share: 0 };
/** Of users whose provider keys change meanwhile; one key is always left. */
export const whileKeysChange: Kind = { name: 'provider keys change', share: 0 };
/** With a service key from its making to after its revocation: who is let in is served. */
export const whileRevoked: Kind = { name: 'key is revoked', share: 0, ends: ['200', '401'] };
/** Sent after the revocation was answered. */
export const afterRevoked: Kind = { name: 'revoked key', share: 0, ends: ['401'] };

/** The mixture, and what is asked beside it (without a share); names are those of the table. */
export const kinds: readonly Kind[] = [
  plain,
  { name: 'stream', share: 25, stream: true },
  { name: 'cached', share: 12, headers: { 'x-gateway-cache': 'true' } },
  { name: 'cached stream', share: 4, stream: true, headers: { 'x-gateway-cache': 'true' } },
  { name: 'vendor 500', share: 2, say: 'vendor-500' },
  { name: 'vendor 429', share: 2, say: 'vendor-429' },
  { name: 'vendor resets', share: 2, say: 'vendor-resets' },
  { name: 'vendor cuts stream', share: 2, stream: true, say: 'vendor-cuts', ends: ['200 (cut)'] },
  { name: 'vendor sends HTML', share: 1, say: 'vendor-html' },
  { name: 'vendor hangs', share: 1, say: 'vendor-hangs', headers: impatient },
  { name: 'vendor stalls', share: 1, stream: true, say: 'vendor-stalls', ends: ['200 (cut)'] },
  { name: 'refused body', share: 2, body: { temperature: 'hot' }, ends: ['422'] },
  {
    name: 'client leaves early',
    share: 2,
    client: 'leaves-early',
    say: 'vendor-waits',
    ends: ['none (cut)'],
  },
  {
    name: 'client leaves stream',
    share: 2,
    stream: true,
    client: 'leaves-late',
    say: 'vendor-talks',
    ends: ['200 (cut)'],
  },
  { name: 'client reads slowly', share: 2, stream: true, client: 'reads-slowly', say: 'vendor-talks' },
  afterReload,
  whileKeysChange,
  whileRevoked,
  afterRevoked,
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
  /** From the call to the last byte, or to what came instead. */
  readonly tookMs: number;
}

/** How it ended, in a word or two. */
export function endOf({ status, whole }: Pick<Ended, 'status' | 'whole'>): string {
  return `${status ?? 'none'}${whole ? '' : ' (cut)'}`;
}

/** Its prompt is shared with others, so that vendors cannot tell whose call it is. */
export function isCached(kind: Kind): boolean {
  return kind.headers?.['x-gateway-cache'] === 'true';
}

function promptOf(kind: Kind, index: number, id: string): string {
  if (isCached(kind)) return `cached ${index % cachedPrompts}`;
  return `request ${id} ${kind.say ?? ''}`;
}

export interface Question {
  readonly url: string;
  /** The service key. */
  readonly key: string;
  readonly kind: Kind;
  /** Of its kind and user: cached prompts come round again. */
  readonly index?: number;
  readonly dispatcher: Dispatcher;
}

/** What its client saw, with what else the answer said: `text` is its last part. */
export interface Told extends Ended {
  readonly headers: Readonly<Record<string, unknown>>;
  readonly text: string;
}

/** Longer than any JSON answer here. */
const keptCharacters = 4096;

/** Sends one request and plays its client's part; never rejects. */
export async function sendOne({ url, key, kind, index = 0, dispatcher }: Question): Promise<Told> {
  const id = randomUUID();
  const leaving = new AbortController();
  const startedAtMs = performance.now();
  let status: number | null = null;
  let headers: Told['headers'] = {};
  let text = '';
  const told = (whole: boolean): Told => {
    const tookMs = performance.now() - startedAtMs;
    return { id, kind: kind.name, status, whole, tookMs, headers, text };
  };
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
    ({ statusCode: status, headers } = response);
    for await (const piece of response.body) {
      text = (text + (piece as Buffer).toString('utf8')).slice(-keptCharacters);
      if (kind.client === 'leaves-late') leaving.abort();
      if (kind.client === 'reads-slowly') await pause(slowReadMs);
    }
  } catch {
    return told(false);
  }
  return told(kind.stream !== true || status !== 200 || text.endsWith('data: [DONE]\n\n'));
}

/** The part of it that is kept for the ledgers. */
export function endedOf({ id, kind, status, whole, tookMs }: Told): Ended {
  return { id, kind, status, whole, tookMs };
}

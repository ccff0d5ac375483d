import { hash } from 'node:crypto';
import { canonicalJson } from '../json/canonical-json.ts';
import type { ChatRequest } from './chat-request.ts';
import type { ResidencyRequest } from './residency.ts';

/** Part of every key: change it when what is stored, or what the key covers, changes its meaning. */
const keyVersion = 'v2';

export interface CacheKeyParts {
  /** An answer is only ever served to the user who paid for it. */
  readonly userId: string;
  /** What was asked: an answer made anywhere must not reach a request restricted to India. */
  readonly residency: ResidencyRequest;
  /** The public mode string, or `override`. */
  readonly mode: string;
  /** The tier's name, or `provider:model@keyId` of an override. */
  readonly target: string;
  readonly request: ChatRequest;
}

/**
 * What an answer is stored for, as text: equal for requests whose answers may stand for each other. Covers every field
 * of the body, passthrough fields included, but `stream` and `stream_options`: how an answer is delivered does not
 * change what it is (docs/decisions). The order of object keys does not matter; the order of arrays does.
 */
export function cachedFor(parts: CacheKeyParts): string {
  const request = { ...parts.request, stream: undefined, stream_options: undefined };
  const text = canonicalJson([parts.userId, parts.residency, parts.mode, parts.target, request]);
  return `${keyVersion}\n${text}`;
}

/** Names the stored answer of a request by what it is stored for: `v2:` and 64 hex digits of SHA-256. */
export function cacheKey(text: string): string {
  return `${keyVersion}:${hash('sha256', text, 'hex')}`;
}

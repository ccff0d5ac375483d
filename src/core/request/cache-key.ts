import { hash } from 'node:crypto';
import { canonicalJson } from '../json/canonical-json.ts';
import type { ChatOptions } from './chat-call.ts';
import type { ChatRequest } from './chat-request.ts';

/** Part of every key: change it when what is stored, or what the key covers, changes its meaning. */
const keyVersion = 'v4';

/** Whether an option changes the answer. The compiler asks it of every new one. */
const isKeyed = {
  /** An answer made anywhere must not reach a request restricted to India. */
  residency: true,
  /** By its mode and target. */
  override: false,
  /** How long an answer may be waited for or kept does not change what it is. */
  timeoutMs: false,
  cacheTtlSeconds: false,
} as const satisfies Readonly<Record<keyof ChatOptions, boolean>>;

type KeyedOption = {
  [Name in keyof ChatOptions]: (typeof isKeyed)[Name] extends true ? Name : never;
}[keyof ChatOptions];
const keyedOptions = (Object.keys(isKeyed) as (keyof ChatOptions)[]).filter(
  (name): name is KeyedOption => isKeyed[name],
);

export interface CacheKeyParts {
  /** An answer is only ever served to the user who paid for it. */
  readonly userId: string;
  readonly options: ChatOptions;
  /** The public mode string, or `override`. */
  readonly mode: string;
  /** The tier's name, or `provider:model@keyId` of an override. */
  readonly target: string;
  readonly request: ChatRequest;
}

/**
 * What an answer is stored for, as text: equal for requests whose answers may stand for each other. Covers every field
 * of the body, passthrough fields included, but `stream` and `stream_options`: how an answer is delivered does not
 * change what it is (docs/decisions/0008). The order of object keys does not matter; the order of arrays does.
 */
export function cachedFor(parts: CacheKeyParts): string {
  const request = { ...parts.request, stream: undefined, stream_options: undefined };
  const asked = keyedOptions.map((name) => parts.options[name]);
  const text = canonicalJson([parts.userId, ...asked, parts.mode, parts.target, request]);
  return `${keyVersion}\n${text}`;
}

/** What a key covers beside the body, a line each: none of it has a line feed. */
export function askedBeside({ userId, options, mode, target }: Omit<CacheKeyParts, 'request'>): string {
  let text = `${userId}\n${mode}\n${target}`;
  for (const name of keyedOptions) text += `\n${options[name]}`;
  return text;
}

/** Names the stored answer of a request by what it is stored for: `v4:` and 64 hex digits of SHA-256. */
export function cacheKey(text: string): string {
  return `${keyVersion}:${hash('sha256', text, 'hex')}`;
}

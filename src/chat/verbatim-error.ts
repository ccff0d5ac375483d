import type { GatewayError } from '../core/errors.ts';
import { ApiError, addressUnusable, noRoom, ProviderError, storedKeyUnreadable } from '../core/errors.ts';
import { longestUsefulRetrySeconds } from '../core/final-error.ts';
import type { AttemptFailure, UpstreamReply } from '../core/outcome.ts';

/**
 * An override request's upstream error, passed on as it came but for the provider key: status, content type, body,
 * Retry-After (SPEC 4.5, routing rule 2). Nothing else of the vendor's headers.
 */
export class VerbatimError extends Error {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;

  constructor(status: number, headers: Readonly<Record<string, string>>, body: Buffer) {
    super(`upstream answered ${status}`);
    this.status = status;
    this.headers = headers;
    this.body = body;
  }
}

/** Status codes of errors (RFC 9110 15.5, 15.6): no HTTP server of ours may send others. */
const [lowestError, highestError] = [400, 599];
/** A longer wait or flag is none; clients and proxies end a connection for headers of some kilobytes. */
const maxHeaderBytes = 128;
const passedOn = ['retry-after', 'retry-after-ms', 'x-should-retry'];
/** All that is looked at of a vendor's headers. */
export const shownHeaders: readonly string[] = ['content-type', ...passedOn];

const mayRepeat = { 'x-should-retry': 'true' } as const;

const isError = (status: number): boolean => status >= lowestError && status <= highestError;

/** Only JSON and text are passed on: an internal service's other content has no business here. */
function isPassable(contentType: string): boolean {
  const type = contentType.split(';', 1)[0]?.trim().toLowerCase() ?? '';
  return type === '' || type === 'application/json' || type.endsWith('+json') || type.startsWith('text/');
}

function isJson(body: Buffer): boolean {
  try {
    JSON.parse(body.toString('utf8'));
    return true;
  } catch {
    return false;
  }
}

/** The vendor's own type, where it gave one that is true: what was cut is no JSON any more. */
function typeOf(given: string, { body, cut }: UpstreamReply): string {
  if (cut) return 'text/plain; charset=utf-8';
  if (given !== '') return given;
  return isJson(body) ? 'application/json' : 'text/plain';
}

/**
 * A request cut by its connection is never sent twice by us: it may have been carried out. Whoever made it knows
 * whether a repeat is safe.
 */
const repeatHint = ' It was not sent again; repeating the request is up to the client.';

/** Our own error, mostly a 502. An error inside of a 200 keeps the vendor's words and code. */
function ownError(failure: AttemptFailure): GatewayError {
  const { status, kind, reason, vendorCode, connectionCut, unusableAddress } = failure;
  if (kind === 'internal-error')
    return new ApiError(new Error('The only candidate failed for an error of ours.'));
  if (kind === 'no-room') return noRoom({}, reason);
  if (kind === 'key-unreadable') return storedKeyUnreadable(reason);
  if (unusableAddress !== undefined) return addressUnusable(reason, unusableAddress);
  if (status !== null || kind === 'unreadable')
    return new ProviderError(reason, { code: vendorCode ?? 'upstream_failed' });
  return connectionCut === true
    ? new ProviderError(reason + repeatHint, { code: 'no_upstream_answer', headers: mayRepeat })
    : new ProviderError(reason, { code: 'no_upstream_answer' });
}

/** A reply that cannot be passed on. Nothing of it is quoted: its bytes are neither JSON nor text. */
function foreignReply({ status }: UpstreamReply): GatewayError {
  return new ProviderError(`The provider answered ${status} with a body that is neither JSON nor text.`);
}

/** Both SDKs repeat a 409, and wait as long as they are told; neither helps unless the vendor says it does. */
function isFutile(reply: UpstreamReply, retryAfterMs: number | null): boolean {
  return reply.status === 409 || (retryAfterMs ?? 0) > longestUsefulRetrySeconds * 1000;
}

/**
 * What an override request answers when its one candidate failed: the vendor's reply, or our own 502 where
 * there was none that can be passed on.
 */
export function overrideError(failure: AttemptFailure): VerbatimError | GatewayError {
  const { reply } = failure;
  const contentType = String(reply?.headers['content-type'] ?? '');
  if (reply !== null && !isPassable(contentType)) return foreignReply(reply);
  if (reply === null || !isError(reply.status)) return ownError(failure);
  const headers: Record<string, string> = {
    'content-type': typeOf(contentType.length > maxHeaderBytes ? '' : contentType, reply),
  };
  for (const name of passedOn) {
    const value = reply.headers[name];
    if (typeof value === 'string' && Buffer.byteLength(value) <= maxHeaderBytes) headers[name] = value;
  }
  if (isFutile(reply, failure.retryAfterMs)) headers['x-should-retry'] ??= 'false';
  return new VerbatimError(reply.status, headers, reply.body);
}

import type { GatewayError } from '../core/errors.ts';
import { ProviderError } from '../core/errors.ts';
import type { AttemptFailure } from '../core/outcome.ts';

/**
 * An override request's upstream error, passed on as it came: status, content type, body, Retry-After
 * (SPEC 4.5, routing rule 2). Nothing else of the vendor's headers.
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

const passedOn = ['retry-after', 'retry-after-ms', 'x-should-retry'];

/** Only JSON and text are passed on: an internal service's other content has no business here. */
function isPassable(contentType: string): boolean {
  const type = contentType.split(';', 1)[0]?.trim().toLowerCase() ?? '';
  return type === '' || type === 'application/json' || type.endsWith('+json') || type.startsWith('text/');
}

/**
 * What an override request answers when its one candidate failed: the vendor's reply, or our own 502 where
 * there was none that can be passed on.
 */
export function overrideError(failure: AttemptFailure): VerbatimError | GatewayError {
  const { reply } = failure;
  const contentType = String(reply?.headers['content-type'] ?? '');
  if (reply === null || reply.status < 400 || !isPassable(contentType)) {
    return new ProviderError(failure.reason, {
      code: reply === null ? 'no_upstream_answer' : 'upstream_failed',
    });
  }
  const headers: Record<string, string> = { 'content-type': contentType === '' ? 'text/plain' : contentType };
  for (const name of passedOn) {
    const value = reply.headers[name];
    if (typeof value === 'string') headers[name] = value;
  }
  return new VerbatimError(reply.status, headers, reply.body);
}

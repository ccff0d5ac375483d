import type { IncomingMessage } from 'node:http';
import { acceptableRequestId } from '../core/request/request-id.ts';

/** As the description and docs/requests.md show it. */
export const requestIdHeader = {
  name: 'X-Request-ID',
  value: '<token>',
  description: '`[A-Za-z0-9_-]{1,128}`, else replaced by a UUID; echoed on every response',
  schema: { type: 'string', pattern: acceptableRequestId.source },
} as const;

/**
 * The effective request id (SPEC 4.5, header rule 2): the client's token if it is well formed, else a
 * fresh UUID. Two headers arrive joined by a comma, which is malformed.
 */
export function requestIdOf(request: IncomingMessage, newId: () => string): string {
  const sent = request.headers['x-request-id'];
  return typeof sent === 'string' && acceptableRequestId.test(sent) ? sent : newId();
}

import type { ServerResponse } from 'node:http';
import type { FastifyRequest } from 'fastify';
import type { CallTrace } from '../core/request/chat-call.ts';

/** One request that is over, whoever ended it. */
export interface EndedRequest {
  readonly method: string;
  /** The route's template; null for unknown paths. */
  readonly route: string | null;
  /** What was sent, or 499 when the client left before there was anything to send. */
  readonly status: number;
  /** False when the client left before it had everything. */
  readonly whole: boolean;
  /** From the headers' arrival to the last byte. */
  readonly durationMs: number;
  readonly trace: CallTrace | null;
  /** Whose doing it is, beside ours, unless it is a 500; null: nobody's. */
  readonly userFault: UserFault | null;
}

/**
 * What users bring with them: the server that one named was to answer; every provider rejected the key that one stored.
 * What fails for these is no failure of the service.
 */
export type UserFault = 'user_server' | 'user_key';

/** nginx's name for "the client closed the request"; never sent. */
const clientClosedStatus = 499;

/** What was sent of a response that has closed; 499: nothing. */
export const sentStatus = (response: ServerResponse): number =>
  response.headersSent ? response.statusCode : clientClosedStatus;

/** What is known of a request whose response has closed. */
export function endedRequest(
  request: FastifyRequest,
  response: ServerResponse,
  route: string | null,
): EndedRequest {
  const { method, enteredAtMs, trace, userFault } = request;
  return {
    method,
    route,
    status: sentStatus(response),
    whole: response.writableFinished,
    durationMs: performance.now() - enteredAtMs,
    trace,
    userFault,
  };
}

import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { KeyVerdict } from '../core/account/key-verdict.ts';
import { clientAddress } from '../core/net/client-network.ts';
import type { ProviderName } from '../core/provider-name.ts';
import type { CallTrace } from '../core/request/chat-call.ts';
import { peerAddress } from './access/peer-address.ts';
import type { Life } from './life.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Where the request's span lies; null when nothing is traced. */
    trace: CallTrace | null;
    /** Its answer comes from a server that its user named. */
    toUserServer: boolean;
  }
}

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
  /** What became of it is the doing of a server that its user named, unless it is a 500. */
  readonly toUserServer: boolean;
}

/** What load shedding refuses for. */
export const shortages = [
  'event_loop_delay',
  'heap',
  'body_bytes',
  'connections',
  'user_share',
  'other',
] as const;
export type Shortage = (typeof shortages)[number];

/**
 * Why a caller was not let in; `malformed` includes keys of the former name after its sunset, `revoked_key` is one that
 * this replica has served before it was revoked, or its user erased: others are `unknown_key`. `admin_token` and
 * `admin_guesses` are of the admin API: no token or a wrong one, and too many wrong ones of late.
 */
export const authFailures = [
  'missing',
  'malformed',
  'unknown_key',
  'revoked_key',
  'user_disabled',
  'registration_token',
  'admin_token',
  'admin_guesses',
] as const;
export type AuthFailure = (typeof authFailures)[number];

/** Who made a request. */
export interface Asker {
  readonly requestId: string;
  /** One address, or `unknown`: never other text of the client's. */
  readonly clientAddress: string;
  /** Held the admin token. */
  readonly isOperator?: true;
}

/** What is audited beside refused authentication. */
export type AuditEvent =
  | {
      readonly audit:
        | 'user_registered'
        | 'user_disabled'
        | 'user_enabled'
        | 'user_residency_bound'
        | 'user_residency_freed'
        | 'user_limits_set'
        | 'user_deleted';
      readonly userId: string;
    }
  | {
      readonly audit: 'service_key_added' | 'service_key_deleted';
      readonly userId: string;
      readonly keyId: string;
    }
  | {
      readonly audit: 'key_added' | 'key_deleted';
      readonly userId: string;
      readonly keyId: string;
      readonly provider: ProviderName;
    };

/** Where a name from before the rename can be used. */
export const legacySurfaces = ['key', 'mode', 'header'] as const;
export type LegacySurface = (typeof legacySurfaces)[number];

/** Who is told what was decided, beside refused authentication. */
export interface Audit {
  audited(event: AuditEvent, asker: Asker): void;
}

/** What the edge reports to its watchers. Calls are cheap and never throw. */
export interface HttpTelemetry extends Audit {
  /** `trusted`: the peer is a proxy of the operator's (`GW_TRUSTED_PROXY_HOPS`). */
  requestStarted(
    method: string,
    route: string | null,
    headers: IncomingHttpHeaders,
    trusted: boolean,
  ): CallTrace | null;
  /** The caller of this request is known now; where its span lies from here on. */
  authenticated(trace: CallTrace | null): CallTrace | null;
  /** Calls `next` at once, as the work of this request. */
  within(trace: CallTrace | null, next: () => void): void;
  requestEnded(ended: EndedRequest): void;
  requestShed(shortage: Shortage): void;
  /** A client that took nothing of its answer for too long was let go. */
  readerStalled(): void;
  authFailed(reason: AuthFailure, asker: Asker): void;
  legacyUsed(surface: LegacySurface): void;
  /** One request of the admin API is over; `route` is its template. */
  adminRequestEnded(method: string, route: string, status: number): void;
  /** A vendor, or a user's server, said what it makes of a key. */
  keyChecked(provider: ProviderName, verdict: KeyVerdict): void;
}

export function askerOf(request: FastifyRequest): Asker {
  return { requestId: request.id, clientAddress: clientAddress(peerAddress(request)) };
}

/** nginx's name for "the client closed the request"; never sent. */
export const clientClosedStatus = 499;

/**
 * Reports every request from its headers to its last byte, and gives back what it held. The raw response's `close`
 * comes exactly once however the request ends; Fastify's own hooks do not run when the client leaves.
 */
export function watchRequests(
  app: FastifyInstance,
  telemetry: HttpTelemetry,
  life: Life,
  trusted: boolean,
): void {
  app.decorateRequest('trace', null);
  app.decorateRequest('toUserServer', false);
  app.addHook('onRequest', (request, reply, done) => {
    const { method, enteredAtMs } = request;
    const route = request.is404 ? null : (request.routeOptions.url ?? null);
    request.trace = telemetry.requestStarted(method, route, request.headers, trusted);
    const { raw } = reply;
    life.requestCount += 1;
    raw.on('close', () => {
      life.requestCount -= 1;
      request.bodyHold?.release();
      // Whoever refused without reading the body has left its connection paused.
      request.earlyBody?.take();
      const status = raw.headersSent ? raw.statusCode : clientClosedStatus;
      telemetry.requestEnded({
        method,
        route,
        status,
        whole: raw.writableFinished,
        durationMs: performance.now() - enteredAtMs,
        trace: request.trace,
        toUserServer: request.toUserServer,
      });
    });
    telemetry.within(request.trace, done);
  });
}

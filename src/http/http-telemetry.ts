import type { IncomingHttpHeaders } from 'node:http';
import type { KeyVerdict } from '../core/account/key-verdict.ts';
import type { ProviderName } from '../core/provider-name.ts';
import type { CallTrace } from '../core/request/chat-call.ts';
import type { Asker, Audit } from './audit.ts';
import type { EndedRequest } from './ended-request.ts';

/** What load shedding refuses for. */
export const shortages = [
  'event_loop_delay',
  'heap',
  'memory',
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

/** Where a name from before the rename can be used. */
export const legacySurfaces = ['key', 'mode', 'header'] as const;
export type LegacySurface = (typeof legacySurfaces)[number];

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

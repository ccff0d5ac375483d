import type { KeyVerdict } from '../core/account/key-verdict.ts';
import { keyVerdicts } from '../core/account/key-verdict.ts';
import { errorRows } from '../core/errors.ts';
import type { RefusingLimit } from '../core/limits/limit-table.ts';
import { refusingLimits } from '../core/limits/limit-table.ts';
import type { ProviderName } from '../core/provider-name.ts';
import { providerNames } from '../core/provider-name.ts';
import type { EndedRequest } from '../http/ended-request.ts';
import type { AuthFailure, LegacySurface, Shortage } from '../http/http-telemetry.ts';
import { authFailures, legacySurfaces, shortages } from '../http/http-telemetry.ts';
import { routes } from '../http/route-table.ts';
import type { StoreResult } from '../limits/user-minutes.ts';
import { storeResults } from '../limits/user-minutes.ts';
import type { Families } from './series.ts';

const chatRoute = routes.chat.path;
const statusesOf = (rows: readonly (typeof errorRows)[number][]): number[] =>
  rows.map(([, status]) => status);
/** What succeeds; 499: the client left. */
const endsWithoutError = [200, 201, 204, 499];
/** Born at 0 on the chat route, for the alerts. */
const chatStatuses = new Set([200, 499, ...statusesOf(errorRows.filter(([, , end]) => end !== 'elsewhere'))]);
/** Statuses of our own; those that vendors make up are counted by their class. */
const knownStatuses = new Set([...endsWithoutError, ...statusesOf(errorRows)]);
const knownMethods = new Set(['GET', 'POST', 'DELETE', 'PUT', 'PATCH', 'HEAD', 'OPTIONS']);

/** `502`, or `5xx` for a status that is not ours. */
export function statusLabel(status: number): string {
  return knownStatuses.has(status) ? String(status) : `${Math.floor(status / 100)}xx`;
}

/** Requests of the API port, all routes, and of the admin API. */
export class HttpMetrics {
  readonly #duration;
  readonly #shed;
  readonly #stalledReaders;
  readonly #legacy;
  readonly #authFailures;
  readonly #adminRequests;
  readonly #keyChecks;
  readonly #limitRefusals;
  readonly #limitStore;

  constructor(families: Families) {
    this.#duration = families.histogram('http_server_request_duration_seconds');
    this.#shed = families.counter('gw_shed_requests_total');
    this.#stalledReaders = families.counter('gw_stalled_readers_total');
    this.#legacy = families.counter('gw_legacy_use_total');
    this.#authFailures = families.counter('gw_auth_failures_total');
    this.#adminRequests = families.counter('gw_admin_requests_total');
    this.#keyChecks = families.counter('gw_key_checks_total');
    this.#limitRefusals = families.counter('gw_limit_refusals_total');
    this.#limitStore = families.counter('gw_limit_store_total');
    this.#stalledReaders.of();
    for (const limit of refusingLimits) this.#limitRefusals.of(limit);
    for (const result of storeResults) this.#limitStore.of(result);
    for (const surface of legacySurfaces) this.#legacy.of(surface);
    for (const reason of authFailures) this.#authFailures.of(reason);
    for (const provider of providerNames)
      for (const verdict of keyVerdicts) this.#keyChecks.of(provider, verdict);
    for (const shortage of shortages) this.#shed.of(shortage);
    for (const status of chatStatuses) this.#duration.of(chatRoute, 'POST', String(status), '');
  }

  requestShed(shortage: Shortage): void {
    this.#shed.of(shortage).add();
  }

  readerStalled(): void {
    this.#stalledReaders.of().add();
  }

  authFailed(reason: AuthFailure): void {
    this.#authFailures.of(reason).add();
  }

  adminRequestEnded(method: string, route: string, status: number): void {
    this.#adminRequests.of(route, method, statusLabel(status)).add();
  }

  keyChecked(provider: ProviderName, verdict: KeyVerdict): void {
    this.#keyChecks.of(provider, verdict).add();
  }

  limitRefused(limit: RefusingLimit): void {
    this.#limitRefusals.of(limit).add();
  }

  limitDecided(by: StoreResult): void {
    this.#limitStore.of(by).add();
  }

  legacyUsed(surface: LegacySurface): void {
    this.#legacy.of(surface).add();
  }

  requestEnded({ method, route, status, durationMs, trace, userFault }: EndedRequest): void {
    const known = knownMethods.has(method) ? method : '_OTHER';
    // An error of ours is ours, wherever the request was to go. To Prometheus an empty label is none.
    const upstream = status === 500 ? '' : (userFault ?? '');
    this.#duration
      .of(route ?? '_unmatched', known, statusLabel(status), upstream)
      .observe(durationMs / 1000, trace);
  }
}

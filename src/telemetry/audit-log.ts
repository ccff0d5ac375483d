import type { Logger } from 'pino';
import type { Asker, AuditEvent } from '../http/audit.ts';
import type { AuthFailure } from '../http/http-telemetry.ts';

/** Guessing comes in floods: enough lines to see who asks, few enough to keep the rest of the log. */
export const refusalsPerWindow = 60;
export const refusalWindowMs = 60_000;

/** Writes one line with these fields. */
export type WriteAudit = (fields: Readonly<Record<string, string | number>>) => void;

export interface AuditLogIo {
  readonly write: WriteAudit;
  readonly monotonicMs: () => number;
  /** Calls once, after this many ms, unless the process ends before. */
  readonly later: (run: () => void, delayMs: number) => void;
}

/**
 * One line for each user registered, each key of either kind added or deleted, each decision of an operator's over the
 * admin API (`by: admin`), and for refused authentication, of which at most `refusalsPerWindow` a minute are written;
 * how many were left out is on a line of its own when the minute is over. Ids, provider, client address and reason are
 * all there is in it: never a key, an e-mail address or a body.
 */
export class AuditLog {
  readonly #io: AuditLogIo;
  #windowEndsAtMs = 0;
  #refusals = 0;

  constructor(io: AuditLogIo) {
    this.#io = io;
  }

  happened(event: AuditEvent, asker: Asker): void {
    this.#io.write({
      audit: event.audit,
      user_id: event.userId,
      ...('keyId' in event && { key_id: event.keyId }),
      ...('provider' in event && { provider: event.provider }),
      ...askerFields(asker),
    });
  }

  refused(reason: AuthFailure, asker: Asker): void {
    const nowMs = this.#io.monotonicMs();
    if (nowMs >= this.#windowEndsAtMs) {
      this.reportLeftOut();
      this.#windowEndsAtMs = nowMs + refusalWindowMs;
    }
    this.#refusals += 1;
    if (this.#refusals <= refusalsPerWindow) {
      this.#io.write({ audit: 'authentication_refused', reason, ...askerFields(asker) });
    } else if (this.#refusals === refusalsPerWindow + 1) {
      const endsAtMs = this.#windowEndsAtMs;
      const report = () => {
        // Refusals of the next window may come before a timer that is late.
        if (this.#windowEndsAtMs === endsAtMs) this.reportLeftOut();
      };
      this.#io.later(report, endsAtMs - nowMs);
    }
  }

  /** Also for the end of the process, so that what was left out is always reported. */
  reportLeftOut(): void {
    const leftOut = this.#refusals - refusalsPerWindow;
    this.#refusals = 0;
    this.#windowEndsAtMs = 0;
    if (leftOut > 0) this.#io.write({ audit: 'authentication_refused', left_out: leftOut });
  }
}

/** Lines of the process log, at the level of the access lines. */
export function createAuditLog(log: Pick<Logger, 'info'>, monotonicMs: () => number): AuditLog {
  return new AuditLog({
    write: (fields) => log.info(fields, 'audit'),
    monotonicMs,
    later: (run, delayMs) => void setTimeout(run, delayMs).unref(),
  });
}

function askerFields({ requestId, clientAddress, isOperator }: Asker): Readonly<Record<string, string>> {
  return {
    request_id: requestId,
    client_address: clientAddress,
    ...(isOperator === true && { by: 'admin' }),
  };
}

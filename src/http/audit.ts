import type { FastifyRequest } from 'fastify';
import { clientAddress } from '../core/net/client-network.ts';
import type { ProviderName } from '../core/provider-name.ts';
import { peerAddress } from './access/peer-address.ts';

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

/** Who is told what was decided, beside refused authentication. */
export interface Audit {
  audited(event: AuditEvent, asker: Asker): void;
}

export function askerOf(request: FastifyRequest): Asker {
  return { requestId: request.id, clientAddress: clientAddress(peerAddress(request)) };
}

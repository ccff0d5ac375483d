import type { FastifyReply } from 'fastify';
import type { Clock } from '../chat/ports.ts';
import type { RoutingTables } from '../core/tables/tables.ts';
import type { LegacyHeaders } from './gateway-headers.ts';

/** The day of the rename (SPEC 9.2), as RFC 9745 writes it. */
const deprecatedSince = `@${Date.UTC(2026, 3, 23) / 1000}`;

/** The service's former name while its surface is accepted; null after the sunset or where there is none. */
export function activeLegacyName(tables: RoutingTables, clock: Clock): string | null {
  const { legacy } = tables;
  return legacy !== null && clock.wallMs() < legacy.sunsetMs ? legacy.name : null;
}

/** The headers of the former name, and whether they are still read; null where there is no such name. */
export function legacyHeaders(tables: RoutingTables, clock: Pick<Clock, 'wallMs'>): LegacyHeaders | null {
  const { legacy } = tables;
  return legacy === null ? null : { name: legacy.name, ended: clock.wallMs() >= legacy.sunsetMs };
}

/** Tells the client that it used the old surface and when it ends (RFC 9745, RFC 8594). */
export function markLegacy(reply: FastifyReply, tables: RoutingTables): void {
  reply.header('deprecation', deprecatedSince);
  if (tables.legacy !== null) reply.header('sunset', new Date(tables.legacy.sunsetMs).toUTCString());
}

import type { FastifyReply, FastifyRequest } from 'fastify';
import type { RoutingTables } from '../core/tables/tables.ts';

/** From here on the request goes by these tables, and its answer says so. */
export function holdTables(request: FastifyRequest, reply: FastifyReply, tables: RoutingTables): void {
  request.tables = tables;
  reply.header('x-gateway-tables-version', tables.hash);
}

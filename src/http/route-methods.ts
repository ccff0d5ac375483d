import type { FastifyInstance } from 'fastify';
import { routeList } from './route-table.ts';

const methodOrder = ['GET', 'HEAD', 'POST', 'DELETE'] as const;

/** Every method that some route takes, as an `Allow` header lists them. HEAD comes with GET. */
export const allMethods = methodOrder.filter((taken) =>
  routeList.some(({ method }) => method === taken || (method === 'GET' && taken === 'HEAD')),
);

/**
 * Methods of a known path, or null for an unknown one. The router itself is asked: it alone knows how a path is
 * decoded, where it ends, and how long its parameter may be. Only for requests that found no route.
 */
export function allowedMethods(app: FastifyInstance, url: string): readonly string[] | null {
  // A path that the router refuses, its parameter being too long, is found too, but without `searchParams`.
  const methods = allMethods.filter((method) => app.findRoute({ method, url })?.searchParams !== undefined);
  return methods.length === 0 ? null : methods;
}

import type { FastifyInstance } from 'fastify';
import type { Route } from './route-table.ts';
import { routeList } from './route-table.ts';

const methodOrder = ['GET', 'HEAD', 'POST', 'PATCH', 'DELETE'] as const;
/** What some route may take. */
export type Method = (typeof methodOrder)[number];

/** Every method that some route of a list takes, as an `Allow` header lists them. HEAD comes with GET. */
export function methodsOf(list: readonly Route[]): readonly Method[] {
  return methodOrder.filter((taken) =>
    list.some(({ method }) => method === taken || (method === 'GET' && taken === 'HEAD')),
  );
}

/** Those of the API port. */
export const allMethods = methodsOf(routeList);

/**
 * Methods of a known path, or null for an unknown one. The router itself is asked: it alone knows how a path is
 * decoded, where it ends, and how long its parameter may be. Only for requests that found no route.
 */
export function allowedMethods(
  app: FastifyInstance,
  url: string,
  methods: readonly Method[] = allMethods,
): readonly string[] | null {
  // A path that the router refuses, its parameter being too long, is found too, but without `searchParams`.
  const taken = methods.filter((method) => app.findRoute({ method, url })?.searchParams !== undefined);
  return taken.length === 0 ? null : taken;
}

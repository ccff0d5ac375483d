import type { Route } from './route-table.ts';
import { routeList } from './route-table.ts';

const methodOrder = ['GET', 'HEAD', 'POST', 'DELETE'] as const;

/** Methods of these routes, as an `Allow` header lists them. HEAD comes with GET. */
function methodsOf(routes: readonly Route[]): readonly string[] {
  const methods = new Set<string>(routes.map(({ method }) => method));
  if (methods.has('GET')) methods.add('HEAD');
  return methodOrder.filter((method) => methods.has(method));
}

function patternOf({ path, openEnd }: Route): string {
  return `^${path.replace(/[.]/g, '\\.').replace(/\{\w+\}$/, openEnd === true ? '.+' : '[^/]+')}$`;
}

/** The API's paths and the methods each takes, for telling 405 from 404. */
const methodsByPath: readonly (readonly [RegExp, readonly string[]])[] = [
  ...Map.groupBy(routeList, patternOf),
].map(([pattern, routes]) => [new RegExp(pattern), methodsOf(routes)]);

/** Every method that some route takes. */
export const allMethods: readonly string[] = methodsOf(routeList);

/** Methods of a known path (query ignored), or null for an unknown one. */
export function allowedMethods(url: string): readonly string[] | null {
  const path = url.split('?', 1)[0] ?? '';
  return methodsByPath.find(([pattern]) => pattern.test(path))?.[1] ?? null;
}

/** The API's paths and the methods each takes, for telling 405 from 404. HEAD comes with GET. */
const routeMethods: readonly (readonly [RegExp, readonly string[]])[] = [
  [/^\/v1\/users$/, ['POST']],
  [/^\/v1\/keys$/, ['GET', 'HEAD', 'POST']],
  [/^\/v1\/keys\/[^/]+$/, ['DELETE']],
  [/^\/v1\/chat\/completions$/, ['POST']],
  [/^\/v1\/logs$/, ['GET', 'HEAD']],
  [/^\/v1\/stats$/, ['GET', 'HEAD']],
  [/^\/v1\/models(\/.+)?$/, ['GET', 'HEAD']],
  [/^\/openapi\.json$/, ['GET', 'HEAD']],
];

/** Methods of a known path (query ignored), or null for an unknown one. */
export function allowedMethods(url: string): readonly string[] | null {
  const path = url.split('?', 1)[0] ?? '';
  return routeMethods.find(([pattern]) => pattern.test(path))?.[1] ?? null;
}

/**
 * Preloaded into the gateway: it counts nothing, to see what counting costs. The product has no such switch. The
 * families stay, and are scraped as zeros. Runs as dist/measured/bench/without-metrics.js.
 */
type Methods = Record<string, (...args: never) => unknown>;

/** The methods of a class of the built gateway. */
async function methods(file: string, name: string): Promise<Methods> {
  const module = (await import(`../../telemetry/${file}.js`)) as Record<string, { prototype: Methods }>;
  const found = module[name];
  if (found === undefined) throw new Error(`There is no ${name} in ${file}.`);
  return found.prototype;
}

for (const prototype of [
  await methods('attempt-metrics', 'AttemptMetrics'),
  await methods('chat-metrics', 'ChatMetrics'),
  await methods('http-metrics', 'HttpMetrics'),
]) {
  for (const name of Object.getOwnPropertyNames(prototype)) {
    if (name !== 'constructor' && name !== 'useTables') prototype[name] = () => undefined;
  }
}
const same = (part: unknown): unknown => part;
const stores = await methods('store-metrics', 'StoreMetrics');
stores['cache'] = same;
stores['openKey'] = same;

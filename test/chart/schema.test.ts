/** values.schema.json: what installs, what is refused and where, and that the server judges a tables document the same. */
import { Ajv } from 'ajv';
import { describe, expect, test } from 'vitest';
import { validateTables } from '../../src/core/tables/validate-tables.ts';
import type { Values } from './chart-files.ts';
import { chartFolder, listFiles, mergeValues, readFile, readYaml, valuesOfPath } from './chart-files.ts';

interface Mutation {
  readonly path: string;
  readonly value: unknown;
  readonly at: string;
}

interface SchemaPart {
  readonly properties?: Readonly<Record<string, SchemaPart>>;
}

const schema = JSON.parse(readFile(`${chartFolder}/values.schema.json`)) as SchemaPart;
/** Both formats come with a pattern, which says the same. */
const formats = { date: true, 'date-time': true } as const;
const validate = new Ajv({
  allErrors: true,
  strict: true,
  strictTypes: false,
  strictRequired: false,
  formats,
}).compile(schema);
const defaults = readYaml(`${chartFolder}/values.yaml`) as Values;
const highAvailability = readYaml(`${chartFolder}/values-ha.yaml`) as Values;
const mutations = readYaml('test/chart/mutations.yaml') as Mutation[];

/** The places that the schema complains about. */
function complaints(values: Values): string[] {
  validate(values);
  return (validate.errors ?? []).map((error) => error.instancePath);
}

describe('the schema accepts', () => {
  test.each([
    ['values.yaml', defaults],
    ['values-ha.yaml', mergeValues(defaults, highAvailability)],
    ...listFiles('test/chart/cases', /\.yaml$/).map((path): [string, Values] => [
      path,
      mergeValues(defaults, readYaml(path) as Values),
    ]),
  ])('%s', (_name, values) => {
    expect(complaints(values)).toEqual([]);
  });
});

test('every value that the schema knows stands in values.yaml', () => {
  const absent: string[] = [];
  /** Not into definitions: those are shapes of Kubernetes, and parts of the tables. */
  const visit = (part: SchemaPart, values: unknown, path: string): void => {
    for (const [key, inner] of Object.entries(part.properties ?? {})) {
      const value = (values as Values | undefined)?.[key];
      if (value === undefined) absent.push(`${path}${key}`);
      visit(inner, value, `${path}${key}.`);
    }
  };
  visit(schema, defaults, '');
  // Helm's own: what parents of the chart share.
  expect(absent).toEqual(['global']);
});

describe('the schema refuses', () => {
  test.each(mutations.map((mutation) => ({ ...mutation, shown: JSON.stringify(mutation.value) })))(
    '$path = $shown, at "$at"',
    ({ path, value, at }) => {
      expect(complaints(mergeValues(defaults, valuesOfPath(path, value)))).toContain(at);
    },
  );

  test('an unknown field at every level that is ours', () => {
    const open: string[] = [];
    const visit = (values: Values, path: string): void => {
      const misspelt = { ...values, misspelt: true };
      const whole = path === '' ? misspelt : mergeValues(defaults, valuesOfPath(path, misspelt));
      if (!complaints(whole).includes(path === '' ? '' : `/${path.replaceAll('.', '/')}`)) open.push(path);
      for (const [key, value] of Object.entries(values)) {
        if (typeof value === 'object' && value !== null && !Array.isArray(value))
          visit(value as Values, path === '' ? key : `${path}.${key}`);
      }
    };
    visit(defaults, '');
    // Kubernetes' own maps and maps with names of the user's choice.
    const foreign =
      /^(nodeSelector|affinity|dnsConfig|commonLabels|pod(Labels|Annotations|SecurityContext)|securityContext)|annotations$|labels$|^resources\.|^otelCollector\.resources\.|^autoscaling\.behavior\./;
    expect(open.filter((path) => !foreign.test(path))).toEqual([]);
  });

  test('everything that a sidecar cannot have', () => {
    const sidecar = { profile: 'sidecar', sidecar: { containers: [{ name: 'app', image: 'app' }] } };
    const with_ = (more: Values) => complaints(mergeValues(mergeValues(defaults, sidecar), more));
    expect(with_({})).toEqual([]);
    expect(with_({ autoscaling: { enabled: true } })).toContain('/autoscaling/enabled');
    expect(with_({ ingress: { enabled: true, hosts: ['a.example'] } })).toContain('/ingress/enabled');
    expect(with_({ httpRoute: { enabled: true, parentRefs: [{}] } })).toContain('/httpRoute/enabled');
    expect(with_({ tables: { source: 'watch' } })).toContain('/tables/source');
  });
});

describe('the server and the schema judge alike', () => {
  const shipped = readYaml(`${chartFolder}/files/tables.yaml`) as Values;
  const changes = mutations.filter(({ path }) => path.startsWith('tables.document.'));

  test('about the shipped tables', () => {
    expect(validateTables(shipped)).toMatchObject({ ok: true });
    expect(complaints(mergeValues(defaults, { tables: { document: shipped } }))).toEqual([]);
  });

  test.each(changes)('about $path', ({ path, value }) => {
    const change = valuesOfPath(path.slice('tables.document.'.length), value);
    expect(validateTables(mergeValues(shipped, change))).toMatchObject({ ok: false });
  });
});

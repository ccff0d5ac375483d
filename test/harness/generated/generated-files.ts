import { readdirSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import type { ParsedNode, YAMLMap } from 'yaml';
import { isMap, isScalar, isSeq, parse, parseDocument, stringify } from 'yaml';
import { providerNames, vendorNames } from '../../../src/core/provider-name.ts';
import { tablesPartJsonSchema } from '../../../src/core/tables/tables-json-schema.ts';
import { inProject } from '../stage/project.ts';
import { madeDocuments } from './made-documents.ts';
import type { MadeFile } from './made-files.ts';
import { markdownTable, withMade } from './made-files.ts';
import { versionedFiles } from './versioned-files.ts';

const chart = 'charts/model-gateway';

interface ValueRow {
  readonly path: string;
  readonly fallback: string;
  readonly meaning: string;
}

interface SchemaPart {
  description?: string;
  readonly $ref?: string;
  readonly properties?: Readonly<Record<string, SchemaPart>>;
}

interface ValuesSchema extends SchemaPart {
  readonly definitions: { tables: unknown };
  readonly properties: SchemaPart['properties'] & {
    readonly vendors: { readonly properties: Readonly<Record<string, SchemaPart>> };
    readonly telemetry: {
      readonly properties: { readonly propagateTo: { readonly items: { enum: unknown } } };
    };
  };
}

interface ChartValues {
  readonly metrics: { readonly dashboards: { readonly labels: object; readonly annotations: object } };
}

/** Every file that follows from others, without Helm. */
export function generatedFiles(): MadeFile[] {
  return [
    { path: `${chart}/values.schema.json`, text: schema() },
    { path: `${chart}/README.md`, text: readme() },
    { path: 'k8s/base/tables.yaml', text: read(`${chart}/files/tables.yaml`) },
    { path: 'k8s/components/monitoring/prometheusrule.yaml', text: prometheusRule() },
    { path: 'k8s/components/monitoring/dashboards.yaml', text: dashboards() },
    ...madeDocuments(),
    ...versionedFiles(),
  ];
}

function read(path: string): string {
  return readFileSync(inProject(path), 'utf8');
}

/**
 * What is allowed is written by hand; what it means is the words of the README's table, and the schema of the tables is the
 * server's own.
 */
function schema(): string {
  const document = JSON.parse(read(`${chart}/values.schema.json`)) as ValuesSchema;
  document.definitions.tables = tablesPartJsonSchema();
  const { vendors, telemetry } = document.properties;
  telemetry.properties.propagateTo.items.enum = providerNames;
  if (Object.keys(vendors.properties).join() !== vendorNames.join())
    throw new Error(`values.schema.json has other vendors than ${vendorNames.join(', ')}.`);
  for (const { path, meaning } of valueRows(read(`${chart}/values.yaml`))) {
    const part = partOf(document, path.split('.'));
    if (part === undefined) throw new Error(`values.schema.json does not know ${path}.`);
    if (part !== sharedShape) part.description = meaning;
  }
  return `${JSON.stringify(document, null, 2)}\n`;
}

/** Below it lie fields of Kubernetes, which mean the same wherever they stand. */
const sharedShape: SchemaPart = {};

/** The part that judges the value at this path; `sharedShape` inside of a shape that several values have. */
function partOf(part: SchemaPart | undefined, path: readonly string[]): SchemaPart | undefined {
  const [key, ...rest] = path;
  if (part === undefined || key === undefined) return part;
  return part.$ref === undefined ? partOf(part.properties?.[key], rest) : sharedShape;
}

/** The chart's alerts for those who do not use the chart. */
function prometheusRule(): string {
  const files = filesOf('rules', '.yaml').map((name) => read(`${chart}/rules/${name}`));
  const groups = files.flatMap((text) => (parse(text) as { groups?: unknown[] }).groups ?? []);
  const metadata = { name: 'model-gateway', labels: { 'app.kubernetes.io/name': 'model-gateway' } };
  const object = {
    apiVersion: 'monitoring.coreos.com/v1',
    kind: 'PrometheusRule',
    metadata,
    spec: { groups },
  };
  return stringify(object, { lineWidth: 0 });
}

/** The chart's dashboards for the same people, found by Grafana's sidecar as those of the chart are. */
function dashboards(): string {
  const values = parse(read(`${chart}/values.yaml`)) as ChartValues;
  const { labels, annotations } = values.metrics.dashboards;
  const objects = filesOf('dashboards', '.json').map((name) => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: {
      name: `model-gateway-${basename(name, '.json')}`,
      labels: { 'app.kubernetes.io/name': 'model-gateway', ...labels },
      annotations,
    },
    data: { [name]: JSON.stringify(JSON.parse(read(`${chart}/dashboards/${name}`))) },
  }));
  return objects.map((object) => stringify(object, { lineWidth: 0 })).join('---\n');
}

function filesOf(folder: string, ending: string): string[] {
  return readdirSync(inProject(chart, folder))
    .filter((name) => name.endsWith(ending))
    .sort();
}

function readme(): string {
  const path = `${chart}/README.md`;
  const rows = valueRows(read(`${chart}/values.yaml`)).map(({ path: value, fallback, meaning }) => [
    `\`${value}\``,
    `\`${fallback}\``,
    meaning.replaceAll('|', '\\|'),
  ]);
  return withMade(path, read(path), 'values', markdownTable(['value', 'default', 'meaning'], rows));
}

/** One row per value with a comment that begins with `--`; a leaf without one is an error. */
function valueRows(text: string): ValueRow[] {
  const { contents } = parseDocument(text);
  if (!isMap<ParsedNode, ParsedNode>(contents)) throw new Error('values.yaml is not a map.');
  return rowsBelow(contents, '');
}

function rowsBelow(map: YAMLMap<ParsedNode, ParsedNode>, prefix: string): ValueRow[] {
  return map.items.flatMap(({ key, value }, index) => {
    const path = `${prefix}${key}`;
    const comment = key.commentBefore ?? (index === 0 ? map.commentBefore : undefined);
    const meaning = /(?:^|\n) -- (.*)$/.exec(comment ?? '')?.[1];
    if (meaning !== undefined) return { path, fallback: fallbackOf(value), meaning };
    if (isMap<ParsedNode, ParsedNode>(value) && value.items.length > 0) return rowsBelow(value, `${path}.`);
    throw new Error(`values.yaml: ${path} has no comment that begins with "# --".`);
  });
}

/** The default on one line; longer ones are left to values.yaml. */
function fallbackOf(value: ParsedNode | null): string {
  if (isScalar(value)) return value.value === '' ? "''" : String(value.value);
  const text = JSON.stringify(value);
  const longest = isSeq(value) ? 40 : 30;
  return text.length <= longest ? text : 'see values.yaml';
}

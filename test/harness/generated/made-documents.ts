import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { errorRows } from '../../../src/core/errors.ts';
import { environmentSchema } from '../../../src/environment.ts';
import { gatewayHeaders } from '../../../src/http/gateway-headers.ts';
import { requestIdHeader } from '../../../src/http/request-id.ts';
import { metricFamilies } from '../../../src/telemetry/families/families.ts';
import { inProject } from '../stage/project.ts';
import { apiReference } from './api-reference.ts';
import type { MadeFile } from './made-files.ts';
import { markdownTable, withMade } from './made-files.ts';

/** The documents whose tables follow from the sources: what they say stands there and nowhere else. */
export function madeDocuments(): MadeFile[] {
  return [
    document('docs/api.md', { reference: apiReference() }),
    document('docs/requests.md', { modes: modes(), headers: headers(), errors: errors() }),
    document('docs/settings.md', { settings: settings() }),
    document('docs/telemetry.md', { metrics: metrics() }),
  ];
}

const read = (path: string): string => readFileSync(inProject(path), 'utf8');
const quoted = (text: string): string => `\`${text}\``;

function document(path: string, tables: Readonly<Record<string, string>>): MadeFile {
  let text = read(path);
  for (const [name, table] of Object.entries(tables)) text = withMade(path, text, name, table);
  return { path, text };
}

/** The order of the shipped tables. */
function modes(): string {
  const { tiers } = parse(read('charts/model-gateway/files/tables.yaml')) as {
    readonly tiers: Readonly<Record<string, readonly { readonly provider: string }[]>>;
  };
  const rows = Object.entries(tiers).map(([tier, candidates]) => [
    quoted(`gw/${tier}`),
    candidates.map(({ provider }) => provider).join(', '),
  ]);
  return markdownTable(['mode', 'candidates, in order'], rows);
}

function headers(): string {
  const rows = [...Object.values(gatewayHeaders), requestIdHeader].map(({ name, value, description }) => [
    quoted(`${name}: ${value}`),
    description,
  ]);
  return markdownTable(['request header', 'meaning'], rows);
}

function errors(): string {
  const rows = errorRows.map(([type, status, , when]) => [String(status), quoted(type), when]);
  return markdownTable(['status', 'type', 'when'], rows);
}

function settings(): string {
  const rows = Object.entries(environmentSchema.shape).map(([name, field]) => {
    if (field.description === undefined) throw new Error(`src/environment.ts: ${name} lacks its meaning.`);
    return [quoted(name), shownDefault(field), field.description.replaceAll('](docs/', '](')];
  });
  return markdownTable(['setting', 'default', 'meaning'], rows);
}

/** As a reader sees it; a dash for none. */
function shownDefault(field: { safeParse(value: unknown): { data?: unknown } }): string {
  const value = String(field.safeParse(undefined).data ?? '');
  return value === '' ? '–' : quoted(value);
}

function metrics(): string {
  const rows = Object.entries(metricFamilies).map(([name, { labels, help }]) => [
    quoted(name),
    labels.map(quoted).join(', '),
    help,
  ]);
  return markdownTable(['family', 'labels', 'meaning'], rows);
}

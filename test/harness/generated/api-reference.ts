import { byDefault, openApiDocument } from '../../../src/http/schemas/openapi.ts';
import { anchorOf } from '../site/anchor.ts';
import { markdownTable } from './made-files.ts';

type Json = Readonly<Record<string, unknown>>;

interface Media {
  readonly schema: Json;
}
interface Answer {
  readonly headers?: Readonly<Record<string, { readonly description: string }>>;
  readonly content?: Readonly<Record<string, Media>>;
}
interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly description?: string;
  readonly schema: Json;
}
interface Operation {
  readonly tags?: readonly string[];
  readonly summary: string;
  readonly security?: readonly unknown[];
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly content: Readonly<Record<string, Media>> };
  readonly responses: Readonly<Record<string, Answer>>;
}

/** A list of values that is longer than a reader wants to see in a cell. */
const mostValues = 12;
/** Numbers that only say that JSON numbers end somewhere. */
const noBound = Number.MAX_SAFE_INTEGER;

/** The reference in Markdown of all that `openApiDocument` describes, the admin API included. */
export function apiReference(): string {
  const { paths } = openApiDocument('', { ...byDefault, hasAdminApi: true }) as {
    paths: Record<string, Record<string, Operation>>;
  };
  const all = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  );
  const isAdmin = ({ operation }: { operation: Operation }) => operation.tags?.includes('admin') === true;
  const list = (those: typeof all) =>
    markdownTable(
      ['endpoint', 'does'],
      those.map(({ path, method, operation }) => {
        const title = `${method.toUpperCase()} ${path}`;
        return [`[\`${title}\`](#${anchorOf(title)})`, operation.summary];
      }),
    );
  const sections = (those: typeof all) =>
    those.map(({ path, method, operation }) => section(path, method, operation)).join('\n\n');
  const ofUsers = all.filter((one) => !isAdmin(one));
  const ofOperators = all.filter(isAdmin);
  return [
    `## For users\n\n${list(ofUsers)}`,
    sections(ofUsers),
    `## For operators\n\nOn the admin port, where there is an admin token: [operations.md](operations.md#the-same-over-http).\n\n${list(ofOperators)}`,
    sections(ofOperators),
  ].join('\n\n');
}

function section(path: string, method: string, operation: Operation): string {
  const parts = [`### \`${method.toUpperCase()} ${path}\``, `${operation.summary}. ${credential(operation)}`];
  const parameters = (operation.parameters ?? []).map(
    ({ name, in: place, required, description, schema }) => [
      quoted(name),
      place,
      required === true ? 'yes' : '',
      typeOf(schema),
      inCell(description ?? describedBy(schema)),
    ],
  );
  if (parameters.length > 0)
    parts.push(markdownTable(['parameter', 'in', 'required', 'type', 'meaning'], parameters));
  const body = operation.requestBody?.content['application/json'];
  if (body !== undefined) parts.push('Body:', fields(body.schema));
  parts.push(
    ...Object.entries(operation.responses)
      .filter(([status]) => status !== 'default')
      .flatMap(answer),
  );
  return parts.join('\n\n');
}

function credential({ security }: Operation): string {
  if (security === undefined) return 'With a service key.';
  if (security.length === 0) return 'Without a key, unless registration asks for a token.';
  return 'With the admin token.';
}

function answer([status, { content }]: [string, Answer]): string[] {
  const json = content?.['application/json'];
  if (json === undefined) return [`Answer ${status}, without a body.`];
  const streamed =
    content?.['text/event-stream'] === undefined
      ? ''
      : ', or a stream of `chat.completion.chunk` and `[DONE]`';
  return [`Answer ${status}${streamed}:`, fields(json.schema)];
}

/** A table of all fields of a schema, nested ones by their path. */
function fields(schema: Json): string {
  const required = schema['oneOf'] === undefined ? '' : `\n\n${alternatives(schema)}`;
  return markdownTable(['field', 'type', 'required', 'meaning'], rows(schema, '')) + required;
}

function rows(schema: Json, prefix: string): string[][] {
  if (schema['type'] === 'array') return rows(schema['items'] as Json, `${prefix}[]`);
  const properties = Object.entries((schema['properties'] ?? {}) as Record<string, Json>);
  const required = (schema['required'] ?? []) as readonly string[];
  return properties.flatMap(([name, property]) => {
    const path = prefix === '' ? name : `${prefix}.${name}`;
    const own = [
      quoted(path),
      typeOf(property),
      required.includes(name) ? 'yes' : '',
      inCell(describedBy(property)),
    ];
    return [own, ...rows(nested(property), path)];
  });
}

/** What stands below a field that may be null. */
function nested(property: Json): Json {
  const choices = ((property['anyOf'] ?? []) as Json[]).filter(
    ({ type }) => type === 'object' || type === 'array',
  );
  return choices.length === 1 ? (choices[0] as Json) : property;
}

/** What goes with what, where a body has several forms. */
function alternatives(schema: Json): string {
  const forms = (schema['oneOf'] as Json[]).flatMap(({ title, required }) =>
    title === undefined
      ? []
      : [`${String(title)}: ${((required ?? []) as string[]).map(quoted).join(', ') || 'nothing more'}`],
  );
  return forms.length === 0 ? '' : `Required as well, by what is meant. ${forms.join('. ')}.`;
}

function typeOf(schema: Json): string {
  const { anyOf, type, items } = schema as { anyOf?: Json[]; type?: string | string[]; items?: Json };
  const values = schema['enum'] as readonly unknown[] | undefined;
  if (schema['const'] !== undefined) return quoted(JSON.stringify(schema['const']));
  if (values !== undefined && values.length <= mostValues)
    return values.map((value) => quoted(String(value))).join(', ');
  if (anyOf !== undefined && type === undefined) return [...new Set(anyOf.map(typeOf))].join(' or ');
  if (type === 'array') return `list of ${items === undefined ? 'anything' : typeOf(items)}`;
  return type === undefined ? 'anything' : [type].flat().join(' or ');
}

/** Its own words, and the bounds that the schema sets. */
function describedBy(schema: Json): string {
  const { description, anyOf } = schema as { description?: string; anyOf?: Json[] };
  const bounded = [schema, ...(anyOf ?? [])].map(bounds).find((text) => text !== '') ?? '';
  return [description, bounded].filter((text) => text !== undefined && text !== '').join('; ');
}

function bounds({ minimum, maximum, minLength, maxLength, minItems, maxItems, format }: Json): string {
  const range = (least: unknown, most: unknown, what: string) => {
    const [from, to] = [least, most].map((bound) =>
      typeof bound === 'number' && Math.abs(bound) < noBound ? bound : undefined,
    );
    if (from !== undefined && to !== undefined) return `${from} to ${to}${what}`;
    if (to !== undefined) return `at most ${to}${what}`;
    return from === undefined ? '' : `at least ${from}${what}`;
  };
  const texts = [
    range(minimum, maximum, ''),
    range(minLength, maxLength, ' characters'),
    range(minItems, maxItems, ' entries'),
    typeof format === 'string' ? format : '',
  ];
  return texts.filter((text) => text !== '').join(', ');
}

const quoted = (text: string): string => `\`${text.replaceAll('|', '\\|')}\``;
const inCell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('\n', ' ');

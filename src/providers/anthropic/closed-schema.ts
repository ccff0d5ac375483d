import type { JsonRecord, Untrusted } from '../json-value.ts';
import { isRecord } from '../json-value.ts';

/** What is looked at of a client's schema (JSON Schema 2020-12). */
interface Schema {
  properties: object;
  additionalProperties: unknown;
}

/** Keywords that hold schemas in a list, one of which is to be met. */
const alternatives = ['anyOf', 'oneOf'] as const;
/** What is met together with the properties beside it: closed, each part would rule the others out. */
const parts = [...alternatives, 'allOf', '$ref'] as const;
/** Keywords that hold schemas by name. */
const named = ['properties', '$defs', 'definitions'] as const;

/**
 * The schema with its objects closed where it does not say: Anthropic takes no open ones (Claude docs: Structured
 * outputs), OpenAI does unless the format is strict, and clients leave the keyword out. What comes of it is valid by
 * the schema as it was. An object without properties stays open, since closed it could hold nothing, and so does one
 * that is put together of parts.
 */
export function closedSchema(schema: JsonRecord): JsonRecord {
  const { properties, additionalProperties }: Untrusted<Schema> = schema;
  const isObject = isRecord(properties);
  const isPutTogether = parts.some((name) => schema[name] !== undefined);
  const isOpen = isObject && additionalProperties === undefined && !isPutTogether;
  const closed: JsonRecord = { ...schema, ...(isOpen && { additionalProperties: false }) };
  closeEach(closed, ['items'], closedIfSchema);
  if (!isObject)
    closeEach(closed, alternatives, (given) => (Array.isArray(given) ? given.map(closedIfSchema) : given));
  closeEach(closed, named, (given) => {
    if (!isRecord(given)) return given;
    return Object.fromEntries(Object.entries(given).map(([name, value]) => [name, closedIfSchema(value)]));
  });
  return closed;
}

function closedIfSchema(value: unknown): unknown {
  return isRecord(value) ? closedSchema(value) : value;
}

function closeEach(schema: JsonRecord, names: readonly string[], close: (given: unknown) => unknown): void {
  for (const name of names) if (schema[name] !== undefined) schema[name] = close(schema[name]);
}

import type { JsonRecord, Untrusted } from '../json-value.ts';
import { isRecord } from '../json-value.ts';

/** What is looked at of a client's schema (JSON Schema 2020-12). */
interface Schema {
  properties: object;
  additionalProperties: unknown;
}

/** Keywords that hold schemas in a list, each of which is met alone: not `allOf`, whose parts are met together. */
const alternatives = ['anyOf', 'oneOf'] as const;
/** Keywords that hold schemas by name. */
const named = ['properties', '$defs', 'definitions'] as const;

/**
 * The schema with its objects closed where it does not say: Anthropic takes no open ones (Claude docs: Structured
 * outputs), OpenAI does unless the format is strict, and clients leave the keyword out. What comes of it is valid by
 * the schema as it was. An object without properties stays open, since closed it could hold nothing.
 */
export function closedSchema(schema: JsonRecord): JsonRecord {
  const { properties, additionalProperties }: Untrusted<Schema> = schema;
  const isOpen = isRecord(properties) && additionalProperties === undefined;
  const closed: JsonRecord = { ...schema, ...(isOpen && { additionalProperties: false }) };
  closeEach(closed, ['items'], closedIfSchema);
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

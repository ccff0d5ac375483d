import type { JsonRecord, Untrusted } from '../json-value.ts';
import { isRecord } from '../json-value.ts';

/** What is looked at of a client's schema by its name (JSON Schema 2020-12). */
interface Schema {
  anyOf: unknown;
  description: string;
}

/** Bounds that Anthropic has no words for, and answers 400 to (Claude docs: Structured outputs, limitations). */
const bounds: ReadonlySet<string> = new Set([
  ...['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'],
  ...['minLength', 'maxLength', 'maxItems', 'uniqueItems', 'minProperties', 'maxProperties'],
]);
/** Keywords that hold a schema, several in a list, or several by name. */
const holders: ReadonlySet<string> = new Set(['items', 'additionalProperties']);
const lists: ReadonlySet<string> = new Set(['anyOf', 'allOf', 'oneOf', 'prefixItems']);
const maps: ReadonlySet<string> = new Set(['properties', '$defs', 'definitions']);

const isBound = (name: string, value: unknown): boolean =>
  bounds.has(name) || (name === 'minItems' && value !== 0 && value !== 1);

/**
 * The schema without what Anthropic refuses: bounds are told in the description, as its own SDKs do, and of
 * alternatives more than one may be met. `onRelaxed` is called where what comes of it is wider than the schema was.
 */
export function relaxedSchema(schema: JsonRecord, onRelaxed: () => void): JsonRecord {
  const { anyOf, description }: Untrusted<Schema> = schema;
  const relaxed: JsonRecord = {};
  const told: JsonRecord = {};
  for (const [name, value] of Object.entries(schema)) {
    if (isBound(name, value)) told[name] = value;
    else if (name === 'oneOf' && anyOf === undefined) {
      onRelaxed();
      Object.assign(relaxed, { anyOf: relaxedParts('anyOf', value, onRelaxed) });
    } else relaxed[name] = relaxedParts(name, value, onRelaxed);
  }
  if (Object.keys(told).length === 0) return relaxed;
  onRelaxed();
  const before = typeof description === 'string' && description !== '' ? `${description}\n\n` : '';
  return { ...relaxed, description: `${before}${JSON.stringify(told)}` };
}

/** What stands under a keyword, with the schemas in it relaxed. */
function relaxedParts(name: string, value: unknown, onRelaxed: () => void): unknown {
  const relax = (given: unknown) => (isRecord(given) ? relaxedSchema(given, onRelaxed) : given);
  if (holders.has(name)) return relax(value);
  if (lists.has(name) && Array.isArray(value)) return value.map(relax);
  if (!maps.has(name) || !isRecord(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([own, schema]) => [own, relax(schema)]));
}

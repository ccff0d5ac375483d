import { z } from 'zod';
import { routingTablesSchema } from './routing-tables.ts';

type JsonObject = Readonly<Record<string, unknown>>;

/** Without `required`: what is left out comes from the document that the part is laid over. */
function partial({ required: _required, ...schema }: JsonObject): JsonObject {
  return schema;
}

/**
 * The JSON Schema (draft 7) of a part of a tables document, as operators lay it over the shipped one: a price table
 * that the server would refuse is refused when it is installed. What rows say about each other is not in it.
 */
export function tablesPartJsonSchema(): JsonObject {
  const {
    $schema: _dialect,
    properties,
    ...whole
  } = z.toJSONSchema(routingTablesSchema, { target: 'draft-7', io: 'input' }) as JsonObject & {
    readonly properties: Readonly<Record<string, JsonObject>>;
  };
  return { ...partial(whole), properties: { ...properties, tiers: partial(properties['tiers'] ?? {}) } };
}

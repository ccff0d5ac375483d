/** A JSON object as parsed: nothing is known of its fields. */
export type JsonRecord = Record<string, unknown>;

export function isRecord(value: unknown): value is JsonRecord {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The parsed value, or undefined (which JSON cannot say) when `text` is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** The string, or '' for anything else. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

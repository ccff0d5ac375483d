/**
 * JSON with the keys of every object in code-unit order: equal values give equal text, and different
 * values different text. Arrays keep their order; members that JSON cannot carry (`undefined`) are left out,
 * as `JSON.stringify` does. Recurses: the caller has bounded the depth.
 */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (value === null || typeof value !== 'object') return JSON.stringify(value) ?? 'null';
  const members: string[] = [];
  for (const key of Object.keys(value).sort()) {
    const member = (value as Readonly<Record<string, unknown>>)[key];
    if (member !== undefined) members.push(`${JSON.stringify(key)}:${canonicalJson(member)}`);
  }
  return `{${members.join(',')}}`;
}

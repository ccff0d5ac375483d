/** One master key that seals provider keys: `kid:base64(32 bytes)` in GW_SEALING_KEYS. */
export interface SealingKey {
  readonly id: string;
  readonly key: Buffer;
}

const keyBytes = 32;

/** `kid:base64[,kid:base64…]` with distinct ids, the first one sealing; null when an entry is malformed. */
export function parseSealingKeys(text: string): readonly SealingKey[] | null {
  const seen = new Set<string>();
  const keys: SealingKey[] = [];
  for (const entry of text.split(',').map((part) => part.trim())) {
    if (entry === '') continue;
    const [id = '', encoded = '', ...rest] = entry.split(':');
    const key = Buffer.from(encoded, 'base64');
    if (rest.length > 0 || !/^[A-Za-z0-9_.-]{1,64}$/.test(id) || seen.has(id)) return null;
    // Node's decoder passes over what is no base64: another key than the one meant would seal.
    if (key.length !== keyBytes || key.toString('base64') !== encoded) return null;
    seen.add(id);
    keys.push({ id, key });
  }
  return keys;
}

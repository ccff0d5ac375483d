/** A parsed JSON text, or why it is not taken. */
export type StrictJson =
  | { readonly kind: 'value'; readonly value: unknown }
  | { readonly kind: 'no-json' }
  | { readonly kind: 'forbidden-key'; readonly key: '__proto__' | 'constructor.prototype' };

const byteOrderMark = '\ufeff';

/**
 * False when no key of the text can be a forbidden one, which escapes may spell too. The name without its quotes: with
 * them V8's search, which begins at each quote, takes five times as long.
 */
function mayHoldForbiddenKey(text: string, spellsByNumber: boolean): boolean {
  return spellsByNumber || text.includes('__proto__') || text.includes('constructor');
}

/** Looks at each object once; without recursion, since nobody has bounded the depth. */
function forbiddenKey(root: unknown): '__proto__' | 'constructor.prototype' | null {
  const left: unknown[] = [root];
  while (left.length > 0) {
    const value = left.pop();
    if (typeof value !== 'object' || value === null) continue;
    if (!Array.isArray(value)) {
      if (Object.hasOwn(value, '__proto__')) return '__proto__';
      const named = Object.hasOwn(value, 'constructor')
        ? (value as { constructor: unknown }).constructor
        : null;
      if (typeof named === 'object' && named !== null && Object.hasOwn(named, 'prototype'))
        return 'constructor.prototype';
    }
    for (const item of Object.values(value)) if (typeof item === 'object') left.push(item);
  }
  return null;
}

/**
 * Parses JSON in which no object may have a key that a careless copy would take for its prototype: `__proto__`, or
 * `constructor` with a `prototype` in it. Parses once, whatever the verdict. `spellsByNumber`: whether any character of
 * the text is given as `\\u` and digits, which whoever has looked at its escapes knows.
 */
export function parseStrictJson(text: string, spellsByNumber: boolean): StrictJson {
  let value: unknown;
  try {
    value = JSON.parse(text.startsWith(byteOrderMark) ? text.slice(1) : text);
  } catch {
    return { kind: 'no-json' };
  }
  const key = mayHoldForbiddenKey(text, spellsByNumber) ? forbiddenKey(value) : null;
  return key === null ? { kind: 'value', value } : { kind: 'forbidden-key', key };
}

declare global {
  /** The proposal "JSON.parse source text access", which Node has since 21 and the library of types has not. */
  interface JSON {
    /** An object that `JSON.stringify` writes as `text`, a JSON number as it stands. */
    rawJSON(text: string): object;
    isRawJSON(value: unknown): boolean;
  }
}

/** True for a number that is kept as it was written: frozen, and no number to any reader. */
export function isKeptNumber(value: unknown): boolean {
  return typeof value === 'object' && value !== null && JSON.isRawJSON(value);
}

/**
 * Replaces the number that `digits` were parsed to with one that is kept as it was written. Any other value stays: of a
 * key that was given twice only the last one counts.
 */
export function keepAs(digits: string): (value: unknown) => unknown {
  const number = Number(digits);
  return (value) => (isKeptNumber(value) || Object.is(value, number) ? JSON.rawJSON(digits) : value);
}

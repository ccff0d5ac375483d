/** Longest text of a vendor that is kept in attempts[], log rows and spans. */
export const maxReasonLength = 500;

/** Masks an attempt's key and its prompt in what its vendor says; texts together, since each look costs. */
export type Redact = (texts: readonly string[]) => readonly string[];

export const mask = '[redacted]';

/** Shapes of credentials that vendors echo: bearer tokens, `sk-…`, `gw_…` and the like. */
const credentialShapes =
  /\b(?:(?:sk|pk|rk|gw|key|tgp|xai)[-_]|AIza)[A-Za-z0-9_\-*.]{6,}|\bBearer\s+[^\s"',]+/g;

/** Whether a text has the shape of a credential in it. */
export const looksSecret = (text: string): boolean => text.search(credentialShapes) >= 0;

/**
 * Makes words fit to be kept: anything shaped like a credential is masked, control characters become spaces, length is
 * capped. A key that is known is masked before (`KeyMask`).
 */
export function redactReason(text: string): string {
  let clean = text.replace(credentialShapes, mask);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is replaced
  clean = clean.replace(/[\u0000-\u001f\u007f]+/g, ' ').toWellFormed();
  return clean.length > maxReasonLength ? `${clean.slice(0, maxReasonLength - 1)}…` : clean;
}

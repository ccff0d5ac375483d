import { headerText } from '../header-text.ts';

/** Longest text of a vendor that is kept in attempts[], log rows and spans. */
export const maxReasonLength = 500;

/** Shapes of credentials that vendors echo: bearer tokens, `sk-…`, `gw_…` and the like. */
const credentialShapes =
  /\b(?:(?:sk|pk|rk|gw|key|tgp|xai)[-_]|AIza)[A-Za-z0-9_\-*.]{6,}|\bBearer\s+[^\s"',]+/g;

/** Fewer characters of a secret than this give nothing away, and are all too likely by chance. */
const shortestSecret = 4;

/** As vendors echo it: plain, JSON- or URL-escaped, and in base64, whose padding gives nothing away. */
function formsOf(secret: string): ReadonlySet<string> {
  const bytes = Buffer.from(secret);
  return new Set([
    secret,
    JSON.stringify(secret).slice(1, -1),
    encodeURIComponent(secret),
    headerText(secret),
    bytes.toString('base64').replace(/={1,2}$/, ''),
    bytes.toString('base64url'),
  ]);
}

/** Another secret than a placeholder that words hold by chance. */
const isTelling = (secret: string): boolean => secret.trim().length >= shortestSecret;

const mask = '[redacted]';

/**
 * The bytes without the secret, in whatever form; the same buffer where it is not in them. `cut`: their end was not
 * read, and may be in the middle of it.
 */
export function withoutSecret(body: Buffer, secret: string, cut: boolean): Buffer {
  if (!isTelling(secret)) return body;
  // A character for each byte: what is no UTF-8 stays as it is.
  const text = body.toString('latin1');
  let clean = text;
  for (const form of formsOf(secret)) {
    const bytes = Buffer.from(form).toString('latin1');
    clean = clean.replaceAll(bytes, mask);
    if (cut) clean = withoutCutSecret(clean, bytes);
  }
  return clean === text ? body : Buffer.from(clean, 'latin1');
}

/** Text that was cut to the limit may end in the middle of the secret. */
function withoutCutSecret(text: string, secret: string): string {
  for (let kept = secret.length - 1; kept >= shortestSecret; kept -= 1) {
    if (text.endsWith(secret.slice(0, kept))) return text.slice(0, -kept) + mask;
  }
  return text;
}

/**
 * Makes a vendor's words fit to be kept: the secret itself (plain, escaped or in base64) and anything
 * shaped like a credential is masked, control characters become spaces, length is capped.
 */
export function redactReason(text: string, secret: string | null): string {
  let clean = text;
  if (secret !== null && isTelling(secret)) {
    for (const form of formsOf(secret)) {
      clean = clean.replaceAll(form, mask);
      if (text.length >= maxReasonLength) clean = withoutCutSecret(clean, form);
    }
  }
  clean = clean.replace(credentialShapes, mask);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is replaced
  clean = clean.replace(/[\u0000-\u001f\u007f]+/g, ' ').toWellFormed();
  return clean.length > maxReasonLength ? `${clean.slice(0, maxReasonLength - 1)}…` : clean;
}

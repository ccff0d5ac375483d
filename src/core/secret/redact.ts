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

/** Text that was cut to the limit may end in the middle of the secret. */
function withoutCutSecret(text: string, secret: string): string {
  for (let kept = secret.length - 1; kept >= shortestSecret; kept -= 1) {
    if (text.endsWith(secret.slice(0, kept))) return `${text.slice(0, -kept)}[redacted]`;
  }
  return text;
}

/**
 * Makes a vendor's words fit to be kept: the secret itself (plain, escaped or in base64) and anything
 * shaped like a credential is masked, control characters become spaces, length is capped.
 */
export function redactReason(text: string, secret: string | null): string {
  let clean = text;
  if (secret !== null && secret.trim().length >= shortestSecret) {
    for (const form of formsOf(secret)) {
      clean = clean.replaceAll(form, '[redacted]');
      if (text.length >= maxReasonLength) clean = withoutCutSecret(clean, form);
    }
  }
  clean = clean.replace(credentialShapes, '[redacted]');
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is replaced
  clean = clean.replace(/[\u0000-\u001f\u007f]+/g, ' ').toWellFormed();
  return clean.length > maxReasonLength ? `${clean.slice(0, maxReasonLength - 1)}…` : clean;
}

import { headerText } from '../header-text.ts';
import { unescapedForms } from './unescaped.ts';

/** Longest text of a vendor that is kept in attempts[], log rows and spans. */
export const maxReasonLength = 500;

/** Masks an attempt's key and its prompt in what its vendor says; texts together, since each look costs. */
export type Redact = (texts: readonly string[]) => readonly string[];

/** Shapes of credentials that vendors echo: bearer tokens, `sk-…`, `gw_…` and the like. */
const credentialShapes =
  /\b(?:(?:sk|pk|rk|gw|key|tgp|xai)[-_]|AIza)[A-Za-z0-9_\-*.]{6,}|\bBearer\s+[^\s"',]+/g;

/** Fewer characters of a secret than this give nothing away, and are all too likely by chance. */
const shortestSecret = 4;
/** The same of the beginning of one, where nobody knows whether the text was cut. */
const shortestBeginning = 8;
const notCut = Number.POSITIVE_INFINITY;

/**
 * As vendors echo it, beside what escapes spell: plain, with its blanks collapsed, URL-escaped, and in base64, whose
 * padding gives nothing away. Without white space around it, which a header's value loses on its way.
 */
function formsOf(given: string): ReadonlySet<string> {
  const secret = given.trim();
  const bytes = Buffer.from(secret);
  return new Set([
    secret,
    secret.replace(/\s+/g, ' '),
    encodeURIComponent(secret),
    headerText(secret),
    bytes.toString('base64').replace(/={1,2}$/, ''),
    bytes.toString('base64url'),
  ]);
}

/** Another secret than a placeholder that words hold by chance. */
const isTelling = (secret: string): boolean => secret.trim().length >= shortestSecret;

const mask = '[redacted]';

/** How long the longest beginning of the pattern is that ends at each of its places, and is not all up to there. */
function bordersOf(pattern: string): Uint32Array {
  const borders = new Uint32Array(pattern.length);
  let border = 0;
  for (let at = 1; at < pattern.length; at += 1) {
    while (border > 0 && pattern.charCodeAt(border) !== pattern.charCodeAt(at)) {
      border = borders[border - 1] as number;
    }
    if (pattern.charCodeAt(border) === pattern.charCodeAt(at)) border += 1;
    borders[at] = border;
  }
  return borders;
}

type Place = readonly [from: number, to: number];

/**
 * Where `secret` stands in the text, and at its end what may be the beginning of one, of `beginning` characters. By
 * Knuth, Morris and Pratt: whoever has a server of their own chooses 64 KB of text and 8 KB of secret, and what is
 * built in looks at every place of the one for all of the other.
 */
function placesOf(text: string, secret: string, beginning: number): Place[] {
  const borders = bordersOf(secret);
  const places: Place[] = [];
  let matched = 0;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    while (matched > 0 && secret.charCodeAt(matched) !== code) matched = borders[matched - 1] as number;
    if (secret.charCodeAt(matched) === code) matched += 1;
    if (matched < secret.length) continue;
    places.push([at + 1 - matched, at + 1]);
    matched = 0;
  }
  if (matched >= beginning) places.push([text.length - matched, text.length]);
  return places;
}

/** Without what lies at these places, which may overlap. */
function withMasked(text: string, places: readonly Place[]): string {
  let clean = '';
  let end = 0;
  for (const [from, to] of places) {
    if (from >= end) clean += text.slice(end, from) + mask;
    end = Math.max(end, to);
  }
  return end === 0 ? text : clean + text.slice(end);
}

/** What a cut may have left of an escape. */
const halfEscape = /(?:\\(?:u[0-9a-fA-F]{0,3}|x[0-9a-fA-F]?)?|&[#a-zA-Z0-9]{0,7}|%[0-9a-fA-F]?)$/;

/** Where escapes, undone once or twice, spell one of `secrets`; in the order of the text. */
function spelledPlaces(text: string, secrets: readonly string[], beginning: number): Place[] {
  const cut = beginning < notCut;
  const found: Place[] = [];
  for (const { text: said, places } of unescapedForms(cut ? text.replace(halfEscape, '') : text)) {
    for (const [from, to] of secrets.flatMap((secret) => placesOf(said, secret, beginning))) {
      const end = cut && to === said.length ? text.length : places[to];
      found.push([places[from] as number, end as number]);
    }
  }
  return found.sort(([one], [other]) => one - other);
}

/** The text without the secret in any of `forms`, and without what spells the first of them with escapes. */
function withoutForms(text: string, forms: readonly string[], beginning: number): string {
  let clean = text;
  for (const form of forms) clean = withMasked(clean, placesOf(clean, form, beginning));
  const [secret = ''] = forms;
  // What looks like an escape in a secret reads as one where it is quoted.
  const secrets = [secret, ...unescapedForms(secret).map((form) => form.text)].filter(isTelling);
  return withMasked(clean, spelledPlaces(clean, secrets, beginning));
}

/**
 * The bytes without the secret, in whatever form; the same buffer where it is not in them. `cut`: their end was not
 * read, and may be in the middle of it.
 */
export function withoutSecret(body: Buffer, secret: string, cut: boolean): Buffer {
  if (!isTelling(secret)) return body;
  // A character for each byte: what is no UTF-8 stays as it is.
  const text = body.toString('latin1');
  const forms = [...formsOf(secret)].map((form) => Buffer.from(form).toString('latin1'));
  const clean = withoutForms(text, forms, cut ? shortestSecret : notCut);
  return clean === text ? body : Buffer.from(clean, 'latin1');
}

/**
 * A vendor's words without the secret, in whatever form; where they are as long as words may be, they were cut, and
 * others may have been, in the middle of it. Before anything else is masked in them: half a secret is not found.
 */
export function maskSecret(text: string, secret: string): string {
  if (!isTelling(secret)) return text;
  const beginning = text.length >= maxReasonLength ? shortestSecret : shortestBeginning;
  return withoutForms(text, [...formsOf(secret)], beginning);
}

/** Whether a text has the shape of a credential in it. */
export const looksSecret = (text: string): boolean => text.search(credentialShapes) >= 0;

/**
 * Makes a vendor's words fit to be kept: the secret itself (plain, escaped or in base64) and anything
 * shaped like a credential is masked, control characters become spaces, length is capped.
 */
export function redactReason(text: string, secret: string | null): string {
  let clean = secret === null ? text : maskSecret(text, secret);
  clean = clean.replace(credentialShapes, mask);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is replaced
  clean = clean.replace(/[\u0000-\u001f\u007f]+/g, ' ').toWellFormed();
  return clean.length > maxReasonLength ? `${clean.slice(0, maxReasonLength - 1)}…` : clean;
}

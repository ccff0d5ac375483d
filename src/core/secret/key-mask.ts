import { headerText } from '../header-text.ts';
import { mask, maxReasonLength } from './redact.ts';
import type { Secret } from './secret.ts';
import { unescapedForms } from './unescaped.ts';

/** Fewer characters of a secret than this give nothing away, and are all too likely by chance. */
const shortestSecret = 4;
/** The same of the beginning of one, where nobody knows whether the text was cut. */
const shortestBeginning = 8;
const notCut = Number.POSITIVE_INFINITY;

/**
 * As vendors echo it, beside what escapes spell: plain, with its blanks collapsed, URL-escaped, and in base64, whose
 * padding gives nothing away. Without white space around it, which a header's value loses on its way.
 */
function formsOf(given: string): readonly string[] {
  const secret = given.trim();
  const bytes = Buffer.from(secret);
  const forms = new Set([
    secret,
    secret.replace(/\s+/g, ' '),
    encodeURIComponent(secret),
    headerText(secret),
    bytes.toString('base64').replace(/={1,2}$/, ''),
    bytes.toString('base64url'),
  ]);
  return [...forms];
}

/** Another secret than a placeholder that words hold by chance. */
const isTelling = (secret: string): boolean => secret.trim().length >= shortestSecret;

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
  if (text.length < Math.min(secret.length, beginning)) return [];
  // No more of it has room there.
  const borders = bordersOf(secret.slice(0, text.length));
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

/** The secret as it may stand in a text. */
interface Sought {
  readonly forms: readonly string[];
  /** What escapes may spell: the secret, and what it reads as itself where it is quoted. */
  readonly spelled: readonly string[];
}

function soughtIn(forms: readonly string[]): Sought {
  const [secret = ''] = forms;
  return { forms, spelled: [secret, ...unescapedForms(secret).map(({ text }) => text)].filter(isTelling) };
}

/** The text without the secret in any form, and without what spells it with escapes. */
function withoutSought(text: string, { forms, spelled }: Sought, beginning: number): string {
  let clean = text;
  for (const form of forms) clean = withMasked(clean, placesOf(clean, form, beginning));
  return withMasked(clean, spelledPlaces(clean, spelled, beginning));
}

/**
 * Takes one key out of what its vendor says, in whatever form. A key may have 8 KB, and an answer many texts: its forms
 * are made once, when the first text needs them.
 */
export class KeyMask {
  readonly #secret: Secret;
  readonly #isTelling: boolean;
  #inWords: Sought | null = null;
  #inBytes: Sought | null = null;

  constructor(secret: Secret) {
    this.#secret = secret;
    this.#isTelling = isTelling(secret.reveal());
  }

  /**
   * A vendor's words without the key; where they are as long as words may be, they were cut, and others may have been,
   * in the middle of it. Before anything else is masked in them: half a key is not found.
   */
  words(text: string): string {
    if (!this.#isTelling || text.length < shortestSecret) return text;
    this.#inWords ??= soughtIn(formsOf(this.#secret.reveal()));
    return withoutSought(
      text,
      this.#inWords,
      text.length >= maxReasonLength ? shortestSecret : shortestBeginning,
    );
  }

  /**
   * The bytes without the key; the same buffer where it is not in them. `cut`: their end was not read, and may be in
   * the middle of it.
   */
  bytes(body: Buffer, cut: boolean): Buffer {
    if (!this.#isTelling || body.length < shortestSecret) return body;
    // A character for each byte: what is no UTF-8 stays as it is.
    this.#inBytes ??= soughtIn(
      formsOf(this.#secret.reveal()).map((form) => Buffer.from(form).toString('latin1')),
    );
    const text = body.toString('latin1');
    const clean = withoutSought(text, this.#inBytes, cut ? shortestSecret : notCut);
    return clean === text ? body : Buffer.from(clean, 'latin1');
  }
}

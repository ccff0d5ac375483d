/** A text with its escapes undone, and where each of its characters begins in the text as it was written. */
export interface Unescaped {
  readonly text: string;
  /** One place more than `text` has characters: the last is the end. */
  readonly places: Uint32Array;
}

/**
 * How JSON, PHP, Python and shells, pages and addresses spell a character that they do not write. Of an address only
 * what is ASCII, of a page no pair of surrogates: what is not is more than one of its escapes, or one that is two.
 */
const escapes =
  /\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|([nrtbf"'\\/]))|&(?:#(\d{1,5})|#[xX]([0-9a-fA-F]{1,4})|(quot|amp|apos|lt|gt));|%([0-7][0-9a-fA-F])/g;
/** Whether there may be any: most texts have none. */
const mayEscape = /[\\&%]/;
/** An error within the error of a proxy is quoted twice. */
const mostForms = 2;

const named: Readonly<Record<string, string>> = {
  n: '\n',
  r: '\r',
  t: '\t',
  b: '\b',
  f: '\f',
  quot: '"',
  amp: '&',
  apos: "'",
  lt: '<',
  gt: '>',
};

/** The UTF-16 unit that an escape stands for. */
function meaningOf([, wide, byte, letter, decimal, hex, entity, percent]: RegExpExecArray): number {
  const name = letter ?? entity;
  if (name !== undefined) return (named[name] ?? name).charCodeAt(0);
  return decimal !== undefined ? Number(decimal) : Number.parseInt(wide ?? byte ?? hex ?? percent ?? '', 16);
}

/** With the escapes undone once; null: it has none. */
function readOnce({ text, places }: Unescaped): Unescaped | null {
  escapes.lastIndex = 0;
  let match = escapes.exec(text);
  if (match === null) return null;
  const units = new Uint16Array(text.length);
  const begins = new Uint32Array(text.length + 1);
  let length = 0;
  for (let at = 0; at < text.length; length += 1) {
    begins[length] = places[at] as number;
    if (match?.index !== at) {
      units[length] = text.charCodeAt(at);
      at += 1;
      continue;
    }
    units[length] = meaningOf(match);
    at = escapes.lastIndex;
    match = escapes.exec(text);
  }
  begins[length] = places[text.length] as number;
  const read = Buffer.from(units.buffer, 0, 2 * length).toString('utf16le');
  return { text: read, places: begins.subarray(0, length + 1) };
}

/** What a text may mean beside what it says, where it is quoted in the form of another: once, and twice. */
export function unescapedForms(text: string): readonly Unescaped[] {
  const forms: Unescaped[] = [];
  if (!mayEscape.test(text)) return forms;
  const places = new Uint32Array(text.length + 1);
  for (let at = 0; at < places.length; at += 1) places[at] = at;
  let last: Unescaped = { text, places };
  while (forms.length < mostForms) {
    const next = readOnce(last);
    if (next === null) break;
    forms.push(next);
    last = next;
  }
  return forms;
}

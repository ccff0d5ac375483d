const [quote, backslash, colon] = [0x22, 0x5c, 0x3a];
/** What a byte outside of strings means: nothing, the begin of a value or key, an opening, a closing, a string. */
const meanings = new Uint8Array(256);
const [begins, opens, closes, quotes] = [1, 2, 3, 4];
for (const byte of [0x2c, 0x3a]) meanings[byte] = begins;
for (const byte of [0x5b, 0x7b]) meanings[byte] = opens;
for (const byte of [0x5d, 0x7d]) meanings[byte] = closes;
meanings[quote] = quotes;

/** A string that is longer is searched by the machine's own means, which need a call. */
const shortString = 64;

/** Bounds of one JSON text; Infinity where there is none. */
export interface JsonBounds {
  /** Values and keys in all. */
  readonly values: number;
  /** Of arrays and objects in each other. */
  readonly depth: number;
  /** Keys of one object: different keys are what parsing and copying cost most for. */
  readonly keys: number;
}

/** The place of the quote that ends the string whose inside begins at `from`; the length when there is none. */
export function endOfString(json: Buffer, from: number): number {
  let at = from;
  const soon = Math.min(json.length, from + shortString);
  for (; at < soon; at += 1) {
    if (json[at] === quote) return at;
    if (json[at] === backslash) at += 1;
  }
  const found = json.indexOf(quote, at);
  const next = found < 0 ? json.length : found;
  // Most quotes end their string. Where one does not, others follow: a search for each would be slower than a look at
  // each byte.
  if (next === json.length || !isEscaped(json, at, next)) return next;
  for (at = next + 1; at < json.length; at += 1) {
    if (json[at] === quote) return at;
    if (json[at] === backslash) at += 1;
  }
  return json.length;
}

/** Whether an odd number of backslashes stands before `place`; `from`: where no escape is under way. */
function isEscaped(json: Buffer, from: number, place: number): boolean {
  let first = place;
  while (first > from && json[first - 1] === backslash) first -= 1;
  return (place - first) % 2 === 1;
}

/**
 * How many values and keys a JSON text holds, or the bound that it is beyond. Three bytes of text (`{},`) become
 * sixty of heap and up to a microsecond of parsing; this looks before that happens, at some 4 ms per megabyte at
 * worst. Text that is no JSON may be judged either way.
 */
export function countJson(json: Buffer, bounds: JsonBounds): number | keyof JsonBounds {
  const keysAt: number[] = [];
  let values = 0;
  let depth = 0;
  for (let at = 0; at < json.length; at += 1) {
    const byte = json[at] as number;
    const meaning = meanings[byte] as number;
    if (meaning === 0) continue;
    if (meaning === quotes) {
      at = endOfString(json, at + 1);
    } else if (meaning === closes) {
      if (depth > 0) depth -= 1;
    } else {
      values += 1;
      if (values > bounds.values) return 'values';
      if (meaning === opens) {
        depth += 1;
        if (depth > bounds.depth) return 'depth';
        keysAt[depth] = 0;
      } else if (byte === colon) {
        const keys = (keysAt[depth] as number) + 1;
        if (keys > bounds.keys) return 'keys';
        keysAt[depth] = keys;
      }
    }
  }
  return values;
}

/** True when a JSON text is beyond a bound: `countJson` for those who need no count. */
export function isBeyond(json: Buffer, bounds: JsonBounds): boolean {
  // Each level takes two bytes, each value one, each key more.
  if (json.length <= Math.min(bounds.values, bounds.keys, 2 * bounds.depth)) return false;
  return typeof countJson(json, bounds) === 'string';
}

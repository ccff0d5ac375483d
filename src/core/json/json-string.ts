const [quote, backslash] = [0x22, 0x5c];

/** A string that is longer is searched by the machine's own means, which need a call. */
const shortString = 64;

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

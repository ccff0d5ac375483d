const [backslash, letterU] = [0x5c, 0x75];
/** So many bytes behind an escape are looked at one by one for the next: in prose and code they come close together. */
const nearBytes = 64;
/** `\uXXXX` */
const unicodeBytes = 6;
/**
 * Half of a character that has no other half is written again by a call that takes as long as ten other escapes. Texts
 * hold a few where they were cut.
 */
const loneSurrogateWeight = 10;

export interface EscapeTally {
  /** Escapes, by what they take to read and write again. */
  readonly weight: number;
  /** Whether one of them is `\uXXXX`. */
  readonly spellsByNumber: boolean;
}

const none: EscapeTally = { weight: 0, spellsByNumber: false };

/**
 * Looks at the escapes of a JSON text, each of which takes as long as twenty plain bytes to parse and to write. Null:
 * they weigh more than `most`. Text that is no JSON may be judged either way. Apart from `tallyJson`: without escapes
 * this is one search, which takes a hundredth of that walk.
 */
export function tallyEscapes(json: Buffer, most: number): EscapeTally | null {
  let at = json.indexOf(backslash);
  if (at < 0) return none;
  let weight = 0;
  let spellsByNumber = false;
  while (at >= 0) {
    weight += 1;
    let next = at + 2;
    if (json[at + 1] === letterU) {
      spellsByNumber = true;
      next = at + unicodeBytes;
      if (isHalf(json, at, highHalves)) {
        if (isHalf(json, next, lowHalves)) next += unicodeBytes;
        else weight += loneSurrogateWeight - 1;
      } else if (isHalf(json, at, lowHalves)) weight += loneSurrogateWeight - 1;
    }
    if (weight > most) return null;
    at = nextBackslash(json, next);
  }
  return { weight, spellsByNumber };
}

function nextBackslash(json: Buffer, from: number): number {
  const near = Math.min(json.length, from + nearBytes);
  for (let at = from; at < near; at += 1) if (json[at] === backslash) return at;
  return json.indexOf(backslash, near);
}

/** The third digit of `\uD8XX` to `\uDBXX`, and of `\uDCXX` to `\uDFXX`. */
const highHalves = new Set(Buffer.from('89abAB'));
const lowHalves = new Set(Buffer.from('cdefCDEF'));

function isHalf(json: Buffer, at: number, halves: ReadonlySet<number>): boolean {
  if (json[at] !== backslash || json[at + 1] !== letterU) return false;
  const first = json[at + 2];
  return (first === 0x64 || first === 0x44) && halves.has(json[at + 3] as number);
}

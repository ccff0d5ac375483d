import { isAscii } from 'node:buffer';

/** A request under way with its reply, its attempt and two sockets; measured at 18 to 25 KB of heap. */
const requestBytes = 24 * 1024;
/**
 * At most, of heap, for what `tallyJson` counts once: an object is a comma and a brace and 67 bytes, one with a key
 * that no other has a comma, a brace, a colon and 290.
 */
const valueBytes = 80;
/** The parsed text and the one that is written for the vendor. */
const copies = 2;

/**
 * No less than what a body makes the process keep until its answer is out, in bytes of heap. `values`: as `tallyJson`
 * counts them; `spellsByNumber`: as `tallyEscapes` says. Text of ASCII takes a byte per character; one other character
 * makes it two for each of its string.
 */
export function bodyCost(body: Buffer, values: number, spellsByNumber: boolean): number {
  const isNarrow = isAscii(body) && !spellsByNumber;
  return requestBytes + copies * (isNarrow ? 1 : 2) * body.length + valueBytes * values;
}

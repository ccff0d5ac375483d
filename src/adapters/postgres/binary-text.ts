/** Texts of a row are ids and names; up to this length a look at each character costs less than the call of a copy. */
const shortText = 40;
const lastAscii = 127;

/** Writes a text in UTF-8, for which there is room; returns how many bytes it took. */
export function writeText(bytes: Buffer, at: number, text: string): number {
  const { length } = text;
  if (length > shortText) return bytes.write(text, at);
  let codes = 0;
  for (let index = 0; index < length; index += 1) {
    const code = text.charCodeAt(index);
    codes |= code;
    bytes[at + index] = code;
  }
  return codes <= lastAscii ? length : bytes.write(text, at);
}

const uuidLength = 36;
const uuidBytes = 16;
/** Where the two digits of each byte stand in its text. */
const places = new Uint8Array([0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34]);
const dash = 45;
const noNibble = 255;
/** By byte. */
const nibbles = new Uint8Array(256).fill(noNibble);
for (let digit = 0; digit < 16; digit += 1) nibbles[digit.toString(16).charCodeAt(0)] = digit;

/**
 * Writes a UUID of the usual form, lower case; returns how many bytes it took. Throws RangeError for any other text.
 * The text lies where the bytes will be until they are read from it: half as dear as to ask for each character.
 */
export function writeUuid(bytes: Buffer, at: number, text: string): number {
  if (text.length !== uuidLength || bytes.write(text, at) !== uuidLength) throw new RangeError('no uuid');
  let seen =
    ((bytes[at + 8] as number) ^ dash) |
    ((bytes[at + 13] as number) ^ dash) |
    ((bytes[at + 18] as number) ^ dash) |
    ((bytes[at + 23] as number) ^ dash);
  if (seen !== 0) throw new RangeError('no uuid');
  for (let index = 0; index < uuidBytes; index += 1) {
    const place = at + (places[index] as number);
    const high = nibbles[bytes[place] as number] as number;
    const low = nibbles[bytes[place + 1] as number] as number;
    seen |= high | low;
    bytes[at + index] = (high << 4) | low;
  }
  if (seen >= 16) throw new RangeError('no uuid');
  return uuidBytes;
}

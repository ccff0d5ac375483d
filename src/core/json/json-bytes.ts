/** A byte for each character of JSON. */
const plainText = /^[ !#-[\]-~]*$/;
const quoteBytes = 2;

/** What a text takes in JSON, without its quotes: an escape is up to six times as long. */
export function jsonBytes(text: string): number {
  return plainText.test(text) ? text.length : Buffer.byteLength(JSON.stringify(text)) - quoteBytes;
}

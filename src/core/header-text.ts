/** What an HTTP header cannot carry as text: all but printable ASCII. */
const uncarried = /[^\x20-\x7e]+/gu;

/** The text for a header: what it cannot carry is percent-encoded (RFC 3986 2.1) as UTF-8, the rest stays as it is. */
export function headerText(text: string): string {
  return text.toWellFormed().replace(uncarried, (part) => encodeURIComponent(part));
}

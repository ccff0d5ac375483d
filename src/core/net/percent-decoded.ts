/**
 * Reads a text that may hold a bare `%`, as passwords pasted into a URL do. Throws `Problem` for bytes that are not
 * UTF-8.
 */
export function percentDecoded(text: string, Problem: new (message: string) => Error): string {
  try {
    return decodeURIComponent(text.replace(/%(?![0-9a-f]{2})/gi, '%25'));
  } catch {
    throw new Problem('has a percent-encoded byte that is not UTF-8.');
  }
}

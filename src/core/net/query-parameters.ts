import { percentDecoded } from './percent-decoded.ts';

/**
 * The parameters of a URL that is no web page's form: a `+` is a plus, as libpq reads it, where `URLSearchParams` makes
 * it a space, which a password does not survive. Of a name that comes twice the last counts. Throws `Problem` for bytes
 * that are not UTF-8.
 */
export function queryParameters(
  text: string,
  Problem: new (message: string) => Error,
): ReadonlyMap<string, string> {
  const parameters = new Map<string, string>();
  for (const part of text.split('&')) {
    if (part === '') continue;
    const equals = part.indexOf('=');
    const name = equals === -1 ? part : part.slice(0, equals);
    const value = equals === -1 ? '' : part.slice(equals + 1);
    parameters.set(percentDecoded(name, Problem), percentDecoded(value, Problem));
  }
  return parameters;
}

/**
 * Which parameter of a query is not known, for a message: by its name, unless the query may be the rest of a password
 * with a bare `?`.
 */
export const unknownParameter = (name: string, query: string): string =>
  /^[\w+-]+$/.test(name) && !query.includes('@')
    ? `a parameter that is not known: ${JSON.stringify(name)}`
    : 'a parameter that is not known; a "?" in a password must be percent-encoded';

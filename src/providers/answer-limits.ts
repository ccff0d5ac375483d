/**
 * Characters of an id or a name which a vendor says once and we repeat or keep: the longest seen have 64. An
 * id of a megabyte would be said again with each of ten thousand events.
 */
export const maxNameLength = 1024;

/** Why such an answer is unreadable. */
export const overfullAnswer = 'the answer holds more values than any answer has';

/** The name, or '' where there is none or one that is no name. */
export function keptName(value: unknown): string {
  return typeof value === 'string' && value.length <= maxNameLength ? value : '';
}

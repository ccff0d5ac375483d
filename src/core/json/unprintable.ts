/**
 * What JSON may hold as it is, and a terminal or a viewer obeys: DEL and the controls beyond it (U+009B begins a
 * sequence as ESC does, U+0085 a line), separators of lines, and marks that turn the direction of what follows.
 */
const unprintable = /[\u007f-\u009f\p{Cf}\p{Zl}\p{Zp}]/gu;

const unitEscape = (unit: number): string => `\\u${unit.toString(16).padStart(4, '0')}`;

/** JSON that says the same, and of which a line is one line wherever it is read. */
export const escapeUnprintable = (json: string): string =>
  json.replace(unprintable, (one) =>
    Array.from({ length: one.length }, (_, index) => unitEscape(one.charCodeAt(index))).join(''),
  );

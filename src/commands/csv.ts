/** What a cell holds. */
export type CsvValue = string | number | boolean | null;

/** Spreadsheets run what begins so, in the letters of full width too: users name models, and vendors word errors. */
const formula = /^[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/;
const number = /^-?\d+(\.\d+)?$/;

function csvCell(value: CsvValue): string {
  const text = value === null ? '' : String(value);
  const safe = formula.test(text) && !number.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** A line of RFC 4180 with its end; a cell that would be run as a formula has a quote before it. */
export const csvLine = (values: readonly CsvValue[]): string => `${values.map(csvCell).join(',')}\r\n`;

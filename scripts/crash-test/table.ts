import type { Result } from './run.ts';

const header = ['fault', 'required', 'what happened', 'verdict'];

/** The results as a Markdown table with aligned columns, and their sum. */
export function table(results: readonly Result[]): string {
  const rows = results.map(({ fault, required, happened, verdict }) => [
    fault,
    required,
    happened.replaceAll('|', '\\|').replaceAll('\n', ' '),
    verdict,
  ]);
  const widths = header.map((name, column) =>
    Math.max(...[header, ...rows].map((row) => [...(row[column] ?? name)].length)),
  );
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`;
  const rule = `|${widths.map((width) => '-'.repeat(width + 2)).join('|')}|`;
  const count = (wanted: string) => results.filter(({ verdict }) => verdict === wanted).length;
  const sum = `${count('pass')} pass, ${count('safe')} safe, ${count('fail')} fail`;
  return [line(header), rule, ...rows.map(line), '', sum].join('\n');
}

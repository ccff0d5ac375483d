import type { RowRate } from './row-rate.ts';
import type { Stand } from './run.ts';

/** The tables that `npm run years` prints. */

const ms = (value: number): string => (value < 10 ? value.toFixed(1) : value.toFixed(0));
const megabytes = (bytes: number): string => `${Math.round(bytes / 1e6)} MB`;
const millions = ({ sizes }: Stand): string => `${(sizes.rows / 1e6).toFixed(1)} million`;

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}

/** What was asked, at each number of rows: p50 / p99 in ms, and p99 of commits beside it against alone. */
function timesTable(stands: readonly Stand[]): string {
  const head = [
    'call',
    ...stands.flatMap((stand) => [`${millions(stand)}: p50 / p99, ms`, 'commits beside']),
  ];
  const rows = (stands[0]?.measured ?? []).map(({ name }, index) => [
    name,
    ...stands.flatMap(({ measured, alone }) => {
      const one = measured[index];
      if (one === undefined) return ['', ''];
      const failed = one.times.failed === 0 ? '' : ` (${one.times.failed} of ${one.times.count} failed)`;
      const time = one.times.count === 1 ? ms(one.times.p50) : `${ms(one.times.p50)} / ${ms(one.times.p99)}`;
      const ratio = `${(one.commits.p99 / alone.p99).toFixed(1)}${one.commits.failed === 0 ? '' : `, ${one.commits.failed} failed`}`;
      return [time + failed, one.commits.count < 100 ? '' : ratio];
    }),
  ]);
  const alone = [
    'commits alone',
    ...stands.flatMap((stand) => [`${ms(stand.alone.p50)} / ${ms(stand.alone.p99)}`, '1']),
  ];
  return table(head, [alone, ...rows]);
}

function sizesTable(stands: readonly Stand[]): string {
  const head = ['rows', 'table', 'its indexes', 'bytes a row', 'sums', 'bytes a sum', 'sums in all'];
  return table(
    head,
    stands.map((stand) => {
      const { rows, tableBytes, indexBytes, sums, sumBytes } = stand.sizes;
      const perRow = `${Math.round(tableBytes / rows)} + ${Math.round(indexBytes / rows)}`;
      return [
        ...[millions(stand), megabytes(tableBytes), megabytes(indexBytes), perRow],
        ...[`${(sums / 1e6).toFixed(1)} million`, String(Math.round(sumBytes / sums)), megabytes(sumBytes)],
      ];
    }),
  );
}

export function yearsTables(stands: readonly Stand[]): string {
  return `${timesTable(stands)}\n\n${sizesTable(stands)}`;
}

/** Rows a second by replicas; commits are of all sessions. */
export function rowRateTable(rates: readonly RowRate[]): string {
  const head = [
    '',
    'replicas',
    'rows/s',
    'rows a commit',
    'cores of Postgres',
    'of the replicas',
    'WAL, MB/s',
    'spooled',
  ];
  return table(
    head,
    rates.map(({ change, replicas, rows, commits, spooled, postgresCores, replicaCores, walBytes }) => [
      ...[change, String(replicas), String(Math.round(rows)), (rows / commits).toFixed(1)],
      ...[postgresCores.toFixed(2), replicaCores.toFixed(2), (walBytes / 1e6).toFixed(1), String(spooled)],
    ]),
  );
}

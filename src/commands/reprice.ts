import type { Command } from 'commander';
import { formatMicroUsd } from '../core/answer/cost.ts';
import type { RepricedModel, RepricedSums } from '../core/answer/repricing.ts';
import { Repricing } from '../core/answer/repricing.ts';
import { compileTables } from '../core/tables/compile-tables.ts';
import type { Period } from '../core/timestamp.ts';
import { formatTimestampMicros } from '../core/timestamp.ts';
import type { JsonOption } from './command.ts';
import { addCommand, jsonOption } from './command.ts';
import { CommandError } from './exit-codes.ts';
import { directDatabaseUrl } from './migrate.ts';
import { print, printJson } from './output.ts';
import { addPeriod, periodOf } from './period.ts';
import { Progress, shareOf } from './progress.ts';

interface RepriceOptions extends JsonOption {
  readonly tables: string;
  readonly since: bigint;
  readonly until?: bigint;
}

function shownSums(sums: RepricedSums) {
  return {
    requests: Number(sums.requests),
    input_tokens: Number(sums.inputTokens),
    output_tokens: Number(sums.outputTokens),
    cost_usd: formatMicroUsd(sums.costMicroUsd),
    repriced_usd: formatMicroUsd(sums.repricedMicroUsd),
    difference_usd: formatMicroUsd(sums.repricedMicroUsd - sums.costMicroUsd),
    unpriced_requests: Number(sums.unpriced),
  };
}

function report(repricing: Repricing, { sinceMicros, untilMicros }: Period, tablesVersion: string) {
  return {
    since: formatTimestampMicros(sinceMicros),
    until: formatTimestampMicros(untilMicros),
    tables_version: tablesVersion,
    totals: shownSums(repricing.totals),
    models: repricing.models().map((one) => ({
      provider: one.provider,
      model: one.model,
      ...shownSums(one),
    })),
  };
}

const header = ['provider', 'model', 'requests', 'cost', 'repriced', 'difference', 'unpriced'];

function cells(provider: string, model: string, sums: RepricedSums): string[] {
  const { requests, cost_usd, repriced_usd, difference_usd, unpriced_requests } = shownSums(sums);
  return [
    provider,
    model,
    String(requests),
    cost_usd,
    repriced_usd,
    difference_usd,
    String(unpriced_requests),
  ];
}

/** Names to the left, numbers to the right. */
function table(repricing: Repricing): string {
  const models = repricing.models().map((one: RepricedModel) => cells(one.provider, one.model, one));
  const lines = [header, ...models, cells('total', '', repricing.totals)];
  const widths = header.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  const text = lines.map((line) =>
    line
      .map((cell, column) =>
        column < 2 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0),
      )
      .join('  '),
  );
  return `${text.join('\n')}\n`;
}

/** Throws CommandError for tables that a gateway would not take. */
async function reprice({ tables: path, since, until, json: asJson }: RepriceOptions): Promise<void> {
  const { readTablesFile } = await import('../adapters/tables/tables-file.ts');
  const { readPaidRows } = await import('../adapters/postgres/read-paid-rows.ts');
  const read = readTablesFile(path);
  if (!read.ok) {
    const { message, isMissing } = read.fault;
    throw new CommandError(isMissing ? 'notFound' : 'failed', `${path} is not usable: ${message}`);
  }
  const period = periodOf(since, until);
  const repricing = new Repricing(compileTables(read.document, read.hash, 1));
  const progress = new Progress();
  try {
    for await (const { rows, untilMicros } of readPaidRows(directDatabaseUrl(), period)) {
      for (const row of rows) repricing.add(row);
      progress.passed(rows.length, shareOf(period, untilMicros));
    }
  } finally {
    progress.end();
  }
  if (asJson) printJson(report(repricing, period, read.hash));
  else print(table(repricing));
}

export function addReprice(program: Command): void {
  const command = addCommand(program, {
    name: 'reprice',
    summary: 'what requests would have cost under other prices',
    details:
      'Reads the request logs of all users, writes nothing. Costs are dollars; unpriced: requests whose model those tables have no price for.',
    example: 'DATABASE_URL=postgres://… model-gateway reprice --tables tables.yaml --since 7d',
  }).requiredOption('--tables <file>', 'tables document with the prices');
  addPeriod(command, '--since', '--until')
    .option(...jsonOption)
    .action(reprice);
}

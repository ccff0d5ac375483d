import type { Command } from 'commander';
import type { JsonOption } from './command.ts';
import { addCommand, jsonOption } from './command.ts';
import { print, printJson, shownText } from './output.ts';
import { addPeriod, periodOf } from './period.ts';
import { withPool } from './with-pool.ts';

interface SpendOptions extends JsonOption {
  readonly from: bigint;
  readonly to?: bigint;
}

async function spend({ from, to, json }: SpendOptions): Promise<void> {
  const { sinceMicros, untilMicros } = periodOf(from, to);
  const { readSpend } = await import('../adapters/postgres/read-spend.ts');
  const { spendReport } = await import('../http/admin/operator-records.ts');
  const period = { fromMicros: sinceMicros, toMicros: untilMicros };
  const report = spendReport(await withPool((pool) => readSpend(pool, period)));
  if (report.more) process.stderr.write(`only the ${report.users.length} users who spent most\n`);
  if (json) {
    printJson(report);
    return;
  }
  print(`from ${report.from} to ${report.to}\n`);
  for (const { cost_usd, requests, errors, user_id, email } of report.users) {
    const counts = `${String(requests).padStart(10)} requests ${String(errors).padStart(8)} errors`;
    print(`$${cost_usd.padStart(14)} ${counts}  ${user_id}  ${shownText(email ?? '(deleted)')}\n`);
  }
}

export function addSpend(program: Command): void {
  const command = addCommand(program, {
    name: 'spend',
    summary: 'show what each user spent in a period',
    details: 'From hourly sums: bounds are widened to whole UTC hours. Deleted users have an id only.',
    example: 'model-gateway spend --from 2026-11-01 --to 2026-12-01 --json',
  });
  addPeriod(command, '--from', '--to')
    .option(...jsonOption)
    .action(spend);
}

import type { Command } from 'commander';
import type { JsonOption } from './command.ts';
import { addCommand, jsonOption } from './command.ts';
import { shownText } from './output.ts';
import { instantArgument, periodOf } from './period.ts';
import { withPool } from './with-pool.ts';

interface SpendOptions extends JsonOption {
  readonly from: bigint;
  readonly to?: bigint;
}

async function spend({ from, to, json }: SpendOptions): Promise<void> {
  const { sinceMicros, untilMicros } = periodOf(from, to);
  const { readSpend } = await import('../adapters/postgres/read-spend.ts');
  const { ceilHour, floorHour } = await import('../adapters/postgres/read-sums.ts');
  const { spendRecord } = await import('../http/operator-records.ts');
  const { formatTimestampMicros } = await import('../core/timestamp.ts');
  const period = { fromMicros: floorHour(sinceMicros), toMicros: ceilHour(untilMicros) };
  const spent = await withPool((pool) => readSpend(pool, period));
  const users = spent.users.map(spendRecord);
  if (spent.isCut) process.stderr.write(`only the ${users.length} users who spent most\n`);
  const bounds = {
    from: formatTimestampMicros(period.fromMicros),
    to: formatTimestampMicros(period.toMicros),
  };
  if (json) {
    process.stdout.write(`${JSON.stringify({ ...bounds, users, more: spent.isCut })}\n`);
    return;
  }
  process.stdout.write(`from ${bounds.from} to ${bounds.to}\n`);
  for (const { cost_usd, requests, errors, user_id, email } of users) {
    const counts = `${String(requests).padStart(10)} requests ${String(errors).padStart(8)} errors`;
    process.stdout.write(
      `$${cost_usd.padStart(14)} ${counts}  ${user_id}  ${shownText(email ?? '(deleted)')}\n`,
    );
  }
}

export function addSpend(program: Command): void {
  addCommand(program, {
    name: 'spend',
    summary: 'show what each user spent in a period',
    details: 'From hourly sums: bounds are widened to whole UTC hours. Deleted users have an id only.',
    example: 'model-gateway spend --from 2026-11-01 --to 2026-12-01 --json',
  })
    .requiredOption(
      '--from <time>',
      'a date (UTC), a time with its zone, or 30d: as many days ago',
      instantArgument,
    )
    .option('--to <time>', 'the same, exclusive; else now', instantArgument)
    .option(...jsonOption)
    .action(spend);
}

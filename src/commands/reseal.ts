import type { Command } from 'commander';
import { readSettings } from '../settings.ts';
import type { JsonOption } from './command.ts';
import { addCommand, jsonOption } from './command.ts';
import { CommandError } from './exit-codes.ts';
import { directDatabaseUrl } from './migrate.ts';
import { print, printJson } from './output.ts';
import { Progress } from './progress.ts';

interface ResealOptions extends JsonOption {
  readonly leaveUnopened?: true;
}

/**
 * Throws CommandError when a stored key opened under none of the keys given, unless such may be left; the others have
 * moved all the same.
 */
async function resealKeys({ json, leaveUnopened }: ResealOptions): Promise<void> {
  const settings = readSettings();
  const { createPool } = await import('../adapters/postgres/pool.ts');
  const { reseal } = await import('../adapters/postgres/reseal.ts');
  const { createSealer } = await import('../adapters/system/sealer.ts');
  const pool = createPool(directDatabaseUrl(settings), 1);
  try {
    const progress = new Progress('keys');
    const report = await reseal(pool, createSealer(settings.sealingKeys), (more, share) =>
      progress.passed(more, share),
    ).finally(() => progress.end());
    if (json) printJson(report);
    else print(`${report.moved} keys moved to the newest sealing key and seal\n`);
    if (report.failed.length === 0) return;
    const ids = report.failed.map((id) => `\n  ${id}`).join('');
    const told = `keys that none of the sealing keys given opens:${ids}`;
    if (leaveUnopened !== true) throw new CommandError('failed', told);
    process.stderr.write(`${told}\n`);
  } finally {
    await pool.end();
  }
}

export function addReseal(program: Command): void {
  addCommand(program, {
    name: 'reseal',
    summary: 'move every stored key to the newest sealing key',
    details: 'Gateways may serve meanwhile; it may be repeated.',
    example: 'GW_SEALING_KEYS=v2:…,v1:… DATABASE_URL=postgres://… model-gateway reseal',
  })
    .option('--leave-unopened', 'name what none of the sealing keys opens, and end with 0 all the same')
    .option(...jsonOption)
    .action(resealKeys);
}

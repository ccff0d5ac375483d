import type { Command } from 'commander';
import { Option } from 'commander';
import { FocusCharges } from '../core/answer/focus-charges.ts';
import { chargedRow, exportedLine } from '../core/log/exported-line.ts';
import { addCommand } from './command.ts';
import type { CsvValue } from './csv.ts';
import { csvLine } from './csv.ts';
import { directDatabaseUrl } from './migrate.ts';
import { writeAsRead } from './output.ts';
import { addPeriod, periodOf } from './period.ts';
import { Progress, shareOf } from './progress.ts';

const formats = ['focus', 'csv', 'ndjson'] as const;

interface ExportOptions {
  readonly format: (typeof formats)[number];
  readonly from: bigint;
  readonly to?: bigint;
}

type Line = Readonly<Record<string, CsvValue>>;

/** Writes lines in one format; a table has its header before the first one. */
class LineWriter {
  readonly #asJson: boolean;
  #began = false;

  constructor(asJson: boolean) {
    this.#asJson = asJson;
  }

  async write(lines: readonly Line[]): Promise<void> {
    let text = '';
    for (const line of lines) {
      if (this.#asJson) text += `${JSON.stringify(line)}\n`;
      else {
        if (!this.#began) text += csvLine(Object.keys(line));
        text += csvLine(Object.values(line));
      }
      this.#began = true;
    }
    await writeAsRead(text);
  }
}

async function exportRows({ format, from, to }: ExportOptions): Promise<void> {
  const { readExportedRows } = await import('../adapters/postgres/read-exported-rows.ts');
  const period = periodOf(from, to);
  const progress = new Progress();
  const writer = new LineWriter(format === 'ndjson');
  const charges = new FocusCharges();
  try {
    for await (const { rows, untilMicros } of readExportedRows(directDatabaseUrl(), period)) {
      if (format !== 'focus') await writer.write(rows.map(exportedLine));
      else {
        const charged = rows.map(chargedRow).filter((row) => row !== null);
        await writer.write(charged.flatMap((row) => charges.add(row)));
      }
      progress.passed(rows.length, shareOf(period, untilMicros));
    }
    await writer.write(charges.end());
  } finally {
    progress.end();
  }
}

export function addExport(program: Command): void {
  const command = addCommand(program, {
    name: 'export',
    summary: 'write what requests used and cost to stdout',
    details:
      'focus: a CSV of FOCUS 1.2, one charge for each hour, user, provider key and model. csv, ndjson: every row of the request logs. Of all users; prompts and answers are not kept.',
    example:
      'DATABASE_URL=postgres://… model-gateway export --format focus --from 2026-11-01 --to 2026-12-01 > costs.csv',
  }).addOption(
    new Option('--format <format>', 'what is written').choices([...formats]).makeOptionMandatory(),
  );
  addPeriod(command, '--from', '--to').action(exportRows);
}

import type { Command } from 'commander';
import { readStorageRegion } from '../settings.ts';
import type { JsonOption } from './command.ts';
import { addCommand, jsonOption } from './command.ts';
import { CommandError } from './exit-codes.ts';
import { print, printJson } from './output.ts';

interface ConfigReport {
  readonly path: string;
  readonly ok: boolean;
  readonly [detail: string]: unknown;
}

function tell(json: true | undefined, report: ConfigReport, text: string): void {
  json ? printJson(report) : print(text);
}

/**
 * One OK line, or the first problems with their paths and a CommandError. Exactly the check that a running gateway
 * makes before it takes a document into use.
 */
async function checkConfig(path: string, { json }: JsonOption): Promise<void> {
  const { readTablesFile } = await import('../adapters/tables/tables-file.ts');
  const read = readTablesFile(path);
  if (!read.ok) {
    const { kind, message, isMissing } = read.fault;
    const text = `${path}: ${kind}\n${message.replaceAll(/^/gm, '  ')}\n`;
    tell(json, { path, ok: false, fault: kind, message }, text);
    throw new CommandError(isMissing ? 'notFound' : 'failed', `${path} is not usable`);
  }
  const { tiers, prices, models } = read.document;
  const candidates = Object.values(tiers).reduce((sum, tier) => sum + tier.length, 0);
  const counts = { candidates, prices: prices.length, models: models.length, hash: read.hash };
  const region = readStorageRegion();
  const kept = region === null ? '' : `, rows stored in ${region}`;
  const text = `${candidates} candidates, ${counts.prices} prices, ${counts.models} models, hash ${read.hash}${kept}`;
  tell(json, { path, ok: true, ...counts, storage_region: region }, `${path}: OK, ${text}\n`);
}

export function addCheckConfig(program: Command): void {
  addCommand(program, {
    name: 'check-config',
    summary: 'check a tables document and print the first problems',
    details: 'It is the check that a running gateway makes.',
    example: 'model-gateway check-config tables.yaml',
  })
    .argument('<file>', 'path of the document')
    .option(...jsonOption)
    .action((file: string, options: JsonOption) => checkConfig(file, options));
}

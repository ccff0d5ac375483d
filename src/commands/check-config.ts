import { readTablesFile } from '../adapters/tables/tables-file.ts';

/**
 * `model-gateway check-config <file>`: one OK line and 0, or the first problems with their paths and 1.
 * Exactly the check that a running gateway makes before it takes a document into use.
 */
export function checkConfig(path: string, out: { write(text: string): unknown }): number {
  const read = readTablesFile(path);
  if (!read.ok) {
    out.write(`${path}: ${read.fault.kind}\n${read.fault.message.replaceAll(/^/gm, '  ')}\n`);
    return 1;
  }
  const { tiers, prices, models } = read.document;
  const candidates = Object.values(tiers).reduce((sum, tier) => sum + tier.length, 0);
  out.write(
    `${path}: OK, ${candidates} candidates, ${prices.length} prices, ${models.length} models, hash ${read.hash}\n`,
  );
  return 0;
}

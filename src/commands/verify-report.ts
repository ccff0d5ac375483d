import type { Command } from 'commander';
import type { ReportVerdict } from '../core/evidence/check-report.ts';
import { ReportCheck } from '../core/evidence/check-report.ts';
import { fingerprint, publicKeyText, readPublicKey } from '../core/evidence/evidence-key.ts';
import { LineSplitter } from '../core/evidence/line-splitter.ts';
import type { JsonOption } from './command.ts';
import { addCommand, jsonOption } from './command.ts';
import { CommandError } from './exit-codes.ts';
import { print, printJson, shownText } from './output.ts';
import { Progress, shareOf } from './progress.ts';

interface VerifyOptions extends JsonOption {
  readonly publicKey?: string;
}

/** As the header has it; null: none was named. Throws CommandError for a file that holds none. */
async function publicKeyOf(path: string | undefined): Promise<string | null> {
  if (path === undefined) return null;
  const { readText } = await import('../adapters/system/evidence-files.ts');
  const key = readPublicKey(await readText(path));
  if (key === null) throw new CommandError('failed', `${path} holds no Ed25519 public key (PEM)`);
  return publicKeyText(key);
}

/** Reads no further than to the first broken link. */
async function check(path: string, publicKey: string | null): Promise<ReportVerdict> {
  const { readPieces } = await import('../adapters/system/evidence-files.ts');
  const report = new ReportCheck(publicKey);
  const lines = new LineSplitter();
  const progress = new Progress();
  try {
    for await (const piece of readPieces(path)) {
      let count = 0;
      for (const line of lines.push(piece)) {
        report.take(line);
        count += 1;
      }
      if (report.broken !== null) break;
      if (report.progress === null) continue;
      const { atMicros, ...period } = report.progress;
      progress.passed(count, shareOf(period, atMicros));
    }
  } finally {
    progress.end();
  }
  return report.finish(lines.rest);
}

const shownCounts = (counts: Readonly<Record<string, number>>): string =>
  Object.entries(counts)
    .map(([name, count]) => `${name} ${count}`)
    .join(', ');

function intactText(path: string, { header, end }: Extract<ReportVerdict, { kind: 'intact' }>): string {
  const lines = [
    `${path}: intact, ${header.from} to ${header.to}, ${header.user_id ?? 'all users'}`,
    `requests        ${end.rows}, of which ${end.listed} had to stay in India`,
    `bound by        ${shownCounts(end.bound_by)}`,
    `served in       ${shownCounts(end.served_in)}`,
    `attempts in     ${shownCounts(end.attempts_in)}`,
    `rows kept in    ${shownText(header.storage_region ?? '(not said)')}`,
    `complete until  ${header.complete_until}`,
    `signed by key   ${fingerprint(header.public_key)}`,
  ];
  return `${lines.join('\n')}\n`;
}

/** Throws CommandError, of another code each, where the report is broken and where nothing proves who signed it. */
async function verifyReport(path: string, { publicKey: keyPath, json }: VerifyOptions): Promise<void> {
  const publicKey = await publicKeyOf(keyPath);
  const verdict = await check(path, publicKey);
  if (verdict.kind === 'broken') {
    const { line, hour, id, problem } = verdict.at;
    if (json) printJson({ verdict: 'broken', line, hour, id, problem });
    const where = [...(hour === null ? [] : [`hour ${hour}`]), ...(id === null ? [] : [`request ${id}`])];
    const place = where.length === 0 ? '' : ` (${where.join(', ')})`;
    throw new CommandError('broken', `${path}: line ${line}${place} ${shownText(problem)}`);
  }
  const { header, end } = verdict;
  const isProven = publicKey !== null;
  if (json) {
    const { kind: _kind, hash: _hash, signature: _signature, previous: _previous, ...counts } = end;
    const { from, to, user_id, storage_region, complete_until } = header;
    const facts = { from, to, user_id, storage_region, complete_until, key: fingerprint(header.public_key) };
    printJson({ verdict: isProven ? 'proven' : 'unproven', ...facts, ...counts });
  } else print(intactText(path, verdict));
  if (!isProven)
    throw new CommandError('unproven', 'nothing proves who signed it: name their key with --public-key');
}

export function addVerifyReport(program: Command): void {
  addCommand(program, {
    name: 'verify-report',
    summary: 'check a report offline, and name the first broken link',
    details:
      'Needs no database and no network. Without --public-key it can only tell that the report is whole, not whose it is, and ends with a code of its own.',
    example: 'model-gateway verify-report november.ndjson --public-key evidence.pub.pem',
  })
    .argument('<file>', 'report')
    .option('--public-key <file>', 'Ed25519 public key (PEM) of whoever should have signed it')
    .option(...jsonOption)
    .action(verifyReport);
}

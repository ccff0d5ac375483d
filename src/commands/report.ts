import type { KeyObject } from 'node:crypto';
import type { Command } from 'commander';
import { storedId } from '../core/account/stored-id.ts';
import { publicKeyText, readPrivateKey, signerWith } from '../core/evidence/evidence-key.ts';
import { reportFacts } from '../core/evidence/report-facts.ts';
import { ReportWriter } from '../core/evidence/write-report.ts';
import type { Period } from '../core/timestamp.ts';
import { hourOf, microsPerHour } from '../core/timestamp.ts';
import type { Settings } from '../settings.ts';
import { readSettings } from '../settings.ts';
import { addCommand } from './command.ts';
import { CommandError } from './exit-codes.ts';
import { directDatabaseUrl } from './migrate.ts';
import { withUser } from './named-user.ts';
import { writeAsRead } from './output.ts';
import { addPeriod, periodOf } from './period.ts';
import { Progress, shareOf } from './progress.ts';

/** Eleven years: each hour is a line, and nobody keeps rows for so long. */
const maxHours = 100_000n;

interface ReportOptions {
  readonly from: bigint;
  readonly to?: bigint;
  readonly user?: string;
  readonly key?: string;
}

/** Throws CommandError where there is none, or none that signs. */
async function signingKey(path: string | undefined, { evidenceKey }: Settings): Promise<KeyObject> {
  const { readText } = await import('../adapters/system/evidence-files.ts');
  const pem = path === undefined ? (evidenceKey?.reveal() ?? null) : await readText(path);
  if (pem === null) {
    const how =
      '"model-gateway evidence-key evidence.pem" makes one: name it with --key or GW_EVIDENCE_KEY_FILE';
    throw new CommandError('failed', `there is no key to sign with; ${how}`);
  }
  const key = readPrivateKey(pem);
  if (key !== null) return key;
  throw new CommandError('failed', 'the key to sign with must be an Ed25519 private key (PKCS#8 PEM)');
}

/** Throws CommandError for a period that no report is made of. */
function reportPeriod(from: bigint, to: bigint | undefined): Period {
  const period = periodOf(from, to);
  if (period.untilMicros > BigInt(Date.now()) * 1000n)
    throw new CommandError('usage', '--to lies in the future: what has not happened cannot be signed');
  const hours = (hourOf(period.untilMicros - 1n) - hourOf(period.sinceMicros)) / microsPerHour + 1n;
  if (hours > maxHours) throw new CommandError('usage', `the period has more than ${maxHours} hours`);
  return period;
}

/** The id of whom the operator named: also of a user who was erased, whose rows stay. Throws CommandError. */
async function userIdOf(idOrEmail: string): Promise<string> {
  const { isUuid } = await import('../adapters/postgres/pool.ts');
  if (isUuid(idOrEmail)) return storedId(idOrEmail);
  return withUser(idOrEmail, async (_pool, { id }) => id);
}

async function report({ from, to, user, key: keyPath }: ReportOptions): Promise<void> {
  const settings = readSettings();
  const key = await signingKey(keyPath, settings);
  const period = reportPeriod(from, to);
  const url = directDatabaseUrl(settings);
  const userId = user === undefined ? null : await userIdOf(user);
  const { readEvidence } = await import('../adapters/postgres/read-evidence.ts');
  const { packageVersion } = await import('../package-version.ts');
  const { storageRegion } = settings;
  const origin = { gateway: packageVersion(), userId, storageRegion, publicKey: publicKeyText(key) };
  const progress = new Progress();
  const writer = new ReportWriter(period);
  try {
    for await (const part of readEvidence(url, period, userId)) {
      switch (part.kind) {
        case 'moment':
          await writeAsRead(writer.begin(reportFacts(origin, part, period.untilMicros)));
          break;
        case 'hours':
          await writeAsRead(writer.hours(part.sinceMicros, part.rows));
          progress.passed(0, shareOf(period, part.sinceMicros));
          break;
        case 'requests':
          await writeAsRead(writer.requests(part.rows));
          progress.passed(part.rows.length, shareOf(period, part.untilMicros));
      }
    }
    await writeAsRead(writer.end(signerWith(key)));
  } finally {
    progress.end();
  }
}

export function addReport(program: Command): void {
  const command = addCommand(program, {
    name: 'report',
    summary: 'write signed evidence of where requests bound to India were served',
    details:
      'Every request that asked for or was bound to India, as lines of JSON: by whose word, where it was served, by which key, and what its attempts reached; per hour the counts, each hour bound to the one before, signed at the end. "verify-report" checks it.',
    example:
      'DATABASE_URL=postgres://… model-gateway report --from 2026-11-01 --to 2026-12-01 --key evidence.pem > november.ndjson',
  });
  addPeriod(command, '--from', '--to')
    .option('--user <user>', 'of this user only: id or e-mail address')
    .option('--key <file>', 'Ed25519 private key (PEM), - for stdin; else that of GW_EVIDENCE_KEY_FILE')
    .action(report);
}

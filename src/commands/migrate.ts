import type { Command } from 'commander';
import { readSettings, SettingsError } from '../settings.ts';
import { addCommand } from './command.ts';
import { print } from './output.ts';

/** The database past a transaction-mode pooler. Throws SettingsError where none is set. */
export function directDatabaseUrl(settings = readSettings()): string {
  if (settings.databaseDirectUrl === null) throw new SettingsError('DATABASE_URL is not set.');
  return settings.databaseDirectUrl;
}

async function migrateSchema(): Promise<void> {
  const { lockHeldReason, migrate } = await import('../adapters/postgres/migrate.ts');
  const { buildOnlineIndexes, onlineIndexes } = await import('../adapters/postgres/online-indexes.ts');
  const url = directDatabaseUrl();
  const { newer } = await migrate(url, {
    onHeld: () => void process.stderr.write(`model-gateway migrate: ${lockHeldReason}: waiting for it\n`),
  });
  await buildOnlineIndexes(url, onlineIndexes);
  print('schema is up to date\n');
  if (newer.length > 0) print(`a newer release applied ${newer.join(', ')}\n`);
}

export function addMigrate(program: Command): void {
  addCommand(program, {
    name: 'migrate',
    summary: 'bring the database schema up to date',
    details: 'Any number of them may run at once, and while gateways serve.',
    example: 'DATABASE_URL=postgres://… model-gateway migrate',
  }).action(migrateSchema);
}

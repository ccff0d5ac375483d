import type { Command } from 'commander';
import { readSettings, SettingsError } from '../settings.ts';
import { addCommand } from './command.ts';

/** The database past a transaction-mode pooler. Throws SettingsError where none is set. */
export function directDatabaseUrl(settings = readSettings()): string {
  if (settings.databaseDirectUrl === null) throw new SettingsError('DATABASE_URL is not set.');
  return settings.databaseDirectUrl;
}

async function migrateSchema(): Promise<void> {
  const { migrate } = await import('../adapters/postgres/migrate.ts');
  await migrate(directDatabaseUrl());
  process.stdout.write('schema is up to date\n');
}

export function addMigrate(program: Command): void {
  addCommand(program, {
    name: 'migrate',
    summary: 'bring the database schema up to date',
    details: 'Any number of them may run at once, and while gateways serve.',
    example: 'DATABASE_URL=postgres://… model-gateway migrate',
  }).action(migrateSchema);
}

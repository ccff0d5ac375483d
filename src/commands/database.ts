import { migrate } from '../adapters/postgres/migrate.ts';
import { createPool } from '../adapters/postgres/pool.ts';
import { reseal } from '../adapters/postgres/reseal.ts';
import { createSealer } from '../adapters/system/sealer.ts';
import type { Settings } from '../settings.ts';
import { SettingsError } from '../settings.ts';

interface Out {
  write(text: string): unknown;
}

function directUrl(settings: Settings): string {
  if (settings.databaseDirectUrl === null) throw new SettingsError('DATABASE_URL is not set.');
  return settings.databaseDirectUrl;
}

async function migrateSchema(settings: Settings, out: Out): Promise<number> {
  await migrate(directUrl(settings));
  out.write('schema is up to date\n');
  return 0;
}

/** Exit code 1 when a stored key opened under none of the keys given; the others have moved all the same. */
async function resealKeys(settings: Settings, out: Out): Promise<number> {
  const pool = createPool(directUrl(settings), 1);
  try {
    const { moved, failed } = await reseal(pool, createSealer(settings.sealingKeys));
    out.write(`${moved} keys moved to the newest sealing key and seal\n`);
    for (const id of failed) out.write(`key ${id} cannot be opened with any of the sealing keys given\n`);
    return failed.length === 0 ? 0 : 1;
  } finally {
    await pool.end();
  }
}

/** Commands that work on the database and end with an exit code. */
export const databaseCommands = { migrate: migrateSchema, reseal: resealKeys } as const;

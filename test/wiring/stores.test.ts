import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { createSealer } from '../../src/adapters/system/sealer.ts';
import { readSettings } from '../../src/settings.ts';
import { Metrics } from '../../src/telemetry/metrics.ts';
import { openStores } from '../../src/wiring/stores.ts';
import { createDatabase } from '../harness/servers/postgres.ts';

test('stores that cannot be opened leave no connection and nothing that asks for one', async () => {
  const database = await createDatabase();
  const folder = mkdtempSync(join(tmpdir(), 'stores-'));
  const file = join(folder, 'file');
  writeFileSync(file, '');
  const url = new URL(database.url);
  url.searchParams.set('application_name', 'stores-test');
  const settings = readSettings({ DATABASE_URL: url.href, GW_SPOOL_DIR: join(file, 'spool') });
  const opening = openStores({
    settings,
    databaseUrl: url.href,
    sealer: createSealer([{ id: 'k', key: randomBytes(32) }]),
    clock: {
      wallMs: () => Date.now(),
      monotonicMs: () => performance.now(),
      stampMicros: () => Date.now() * 1000,
    },
    log: pino({ level: 'silent' }),
    lines: { print: () => undefined, untilLeft: async () => true },
    metrics: new Metrics().stores,
    onKept: () => undefined,
    onStore: () => undefined,
  });
  await expect(opening).rejects.toThrow('ENOTDIR');
  const watcher = new pg.Client(database.url);
  await watcher.connect();
  const connections = async () => {
    const { rows } = await watcher.query<{ open: number }>(
      'SELECT count(*)::integer AS open FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()',
    );
    return rows[0]?.open;
  };
  await expect.poll(connections).toBe(0);
  await watcher.end();
  await database.drop();
  rmSync(folder, { recursive: true, force: true });
});

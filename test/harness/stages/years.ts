import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { createPool } from '../../../src/adapters/postgres/pool.ts';
import { startEmbeddedPostgres } from '../../../src/dev/embedded-postgres.ts';
import { StageError } from '../stage/project.ts';
import type { Tally } from '../stage/run-stage.ts';
import { runStage, withRunFolder } from '../stage/run-stage.ts';
import { measureFanOut } from '../years/fan-out.ts';
import { rowRateTable, yearsTables } from '../years/page.ts';
import { measureRowRates } from '../years/row-rate.ts';
import type { Stand } from '../years/run.ts';
import { measureYears } from '../years/run.ts';

/**
 * `npm run years [-- --million 10] [--weeks 104] [--users 1000]`: what users and operators ask of a database with years of
 * rows, at a tenth of them and at all, while rows are committed beside. Prints the tables of docs/scale.md; a call that
 * fails fails the stage. Ten million take a quarter of an hour and 20 GB. Instead, with `--listeners 200`: how soon so many
 * replicas hear of a change of keys; with `--replicas 1,2,4`: how many rows a second so many commit.
 */
const { values } = parseArgs({
  options: {
    million: { type: 'string', default: '10' },
    weeks: { type: 'string', default: '104' },
    users: { type: 'string', default: '1000' },
    listeners: { type: 'string' },
    replicas: { type: 'string' },
  },
});

type Three = [number, number, number];

/** Beside listeners: those that tell, and what the server keeps for itself. */
const otherConnections = 20;

async function years(databaseUrl: string): Promise<Tally> {
  const [million, weeks, users] = [values.million, values.weeks, values.users].map(Number) as Three;
  if (!(million > 0 && weeks >= 5 && users >= 1))
    throw new StageError('--million is above 0, --weeks at least 5, --users at least 1.');
  const stands = [Math.round(million * 100_000), Math.round(million * 1_000_000)];
  const onStand = (stand: Stand) => console.log(`\n${yearsTables([stand])}\n`);
  const found = await measureYears({ databaseUrl, weeks, users, stands, onStand });
  console.log(`\n${yearsTables(found)}\n`);
  const all = found.flatMap(({ measured }) => measured);
  const failed = all.filter(({ times, commits }) => times.failed + commits.failed > 0).length;
  return { passed: all.length - failed, failed, skipped: 0 };
}

/** A database that waits for the disk, as one does whose rows are to stay. */
await runStage(() =>
  withRunFolder(async (folder) => {
    const directory = join(folder, 'years');
    mkdirSync(directory);
    const start = () => startEmbeddedPostgres({ directory, durable: true });
    let postgres = await start();
    try {
      if (values.replicas !== undefined) {
        const rates = await measureRowRates(
          postgres.url,
          postgres.pid,
          folder,
          values.replicas.split(',').map(Number),
        );
        console.log(`\n${rowRateTable(rates)}\n`);
        return { passed: rates.length, failed: 0, skipped: 0 };
      }
      if (values.listeners === undefined) return await years(postgres.url);
      const listeners = Number(values.listeners);
      const pool = createPool(postgres.url, 1);
      await pool.query(`ALTER SYSTEM SET max_connections = ${listeners + otherConnections}`);
      await pool.end();
      await postgres.stop();
      postgres = await start();
      const found = await measureFanOut(postgres.url, postgres.pid, listeners);
      console.log(JSON.stringify(found, null, 2));
      return { passed: found.missed === 0 ? 1 : 0, failed: found.missed === 0 ? 0 : 1, skipped: 0 };
    } finally {
      await postgres.stop();
    }
  }),
);

import pg from 'pg';
import { migrate } from '../../../src/adapters/postgres/migrate.ts';

/** `node migrate-child.ts <url> [statements]`: migrates; kills itself when so many migrations have begun. */
const [url = '', killAfter] = process.argv.slice(2);
if (killAfter !== undefined) {
  const query = pg.Client.prototype.query;
  let begun = 0;
  pg.Client.prototype.query = function (this: pg.Client, ...args: unknown[]): never {
    const result = (query as (...all: unknown[]) => Promise<unknown>).apply(this, args);
    if (
      typeof args[0] === 'string' &&
      args[0].includes('CREATE TABLE') &&
      !args[0].includes('schema_migrations')
    ) {
      begun += 1;
      if (begun === Number(killAfter)) void result.finally(() => process.kill(process.pid, 'SIGKILL'));
    }
    return result as never;
  } as typeof query;
}
await migrate(url);

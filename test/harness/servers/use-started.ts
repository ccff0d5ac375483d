import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type pg from 'pg';
import { aroundAll, beforeEach, onTestFinished } from 'vitest';
import type { PoolOptions } from '../../../src/adapters/postgres/pool.ts';
import { createPool } from '../../../src/adapters/postgres/pool.ts';
import { patient } from '../measure/crowding.ts';
import type { TestDatabase } from './postgres.ts';
import { createDatabase } from './postgres.ts';

/** `aroundAll`, or `aroundEach`: whether tests share one or each gets its own. */
type Around = (hook: (run: () => Promise<void>) => Promise<void>) => void;

/**
 * What `start` resolves with, for the tests and hooks of the file or `describe` that calls this: begun before them and
 * ended after them, in the opposite order of several, whatever fails. Until then nothing of it can be read: options that
 * need it are functions.
 */
export function useStarted<T extends object>(
  start: () => Promise<T>,
  end?: (started: T) => Promise<unknown>,
  around: Around = aroundAll,
): T {
  let started: T | null = null;
  around(async (run) => {
    const own = await start();
    started = own;
    try {
      await run();
    } finally {
      await end?.(own);
    }
  });
  return standIn(() => {
    if (started === null)
      throw new Error('not started yet: read it in a test, a hook, or a function of options');
    return started;
  });
}

/** The same for what is closed at the end and, where it can be, cleared before each test. */
export function useServer<T extends { close(): Promise<unknown>; clear?(): void }>(
  start: () => Promise<T>,
): T {
  const server = useStarted(start, (started) => started.close());
  beforeEach(() => server.clear?.());
  return server;
}

/** Closes it when the running test has ended; returns it. */
export function closeAfterTest<T extends { close(): Promise<unknown> }>(started: T): T {
  onTestFinished(async () => {
    await started.close();
  });
  return started;
}

/** A database of its own, with the schema unless `migrated` is false. */
export function useDatabase(around: Around = aroundAll, options: { migrated?: boolean } = {}): TestDatabase {
  return useStarted(
    () => createDatabase(options),
    (database) => database.drop(),
    around,
  );
}

/** Against hanging: how soon a gateway gives up on Postgres is judged by tests of `useGatewayPool`. */
const answerLimitMs = 10_000;

/** As many connections to it at most. */
export function usePool(
  database: TestDatabase,
  connections: number,
  around: Around = aroundAll,
  options: PoolOptions = {},
): pg.Pool {
  const limitMs = Math.round(patient(answerLimitMs));
  const create = () => {
    const pool = createPool(database.url, connections, { patienceMs: limitMs, ...options });
    pool.options.connectionTimeoutMillis = limitMs;
    return pool;
  };
  return usePoolOf(create, around);
}

/** The same, as patient as the pool of a gateway. */
export function useGatewayPool(
  database: TestDatabase,
  connections: number,
  around: Around = aroundAll,
): pg.Pool {
  return usePoolOf(() => createPool(database.url, connections), around);
}

function usePoolOf(create: () => pg.Pool, around: Around): pg.Pool {
  return useStarted(
    async () => create(),
    (pool) => pool.end(),
    around,
  );
}

/** An empty folder that is gone afterwards with what is in it. */
export function useFolder(around: Around = aroundAll): { readonly path: string } {
  return useStarted(
    async () => ({ path: await mkdtemp(join(tmpdir(), 'model-gateway-test-')) }),
    ({ path }) => rm(path, { recursive: true, force: true }),
    around,
  );
}

/** An object that is whatever `read` returns, each time anew. */
function standIn<T extends object>(read: () => T): T {
  return new Proxy({} as T, {
    get: (_, name) => {
      const real = read();
      const value: unknown = Reflect.get(real, name);
      return typeof value === 'function' ? value.bind(real) : value;
    },
    ownKeys: () => Reflect.ownKeys(read()),
    getOwnPropertyDescriptor: (_, name) => Reflect.getOwnPropertyDescriptor(read(), name),
  });
}

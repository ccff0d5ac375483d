import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import pg from 'pg';
import { keyChangesChannel } from '../../src/adapters/postgres/provider-keys.ts';
import { newServiceKey } from '../../src/core/account/service-key.ts';
import type { User } from '../harness/gateway/register.ts';
import { addKey, registerWithKeys } from '../harness/gateway/register.ts';
import type { GatewayUnderTest } from '../harness/gateway/start-gateway.ts';
import { sealingKeys, startGateway } from '../harness/gateway/start-gateway.ts';
import { tables } from '../harness/gateway/tables.ts';
import { untilReadyIs } from '../harness/measure/fault-metrics.ts';
import type { FaultyWire } from '../harness/servers/fault-proxy.ts';
import { startFaultyWire, through } from '../harness/servers/fault-proxy.ts';
import type { TestDatabase } from '../harness/servers/postgres.ts';
import { createDatabase } from '../harness/servers/postgres.ts';
import type { VendorPack } from '../harness/vendors/vendor-pack.ts';
import type { Auth } from './attack-case.ts';
import { chartProcess } from './chart-process.ts';
import type { Witness } from './judge/witness-client.ts';
import { witnessOf } from './judge/witness-client.ts';
import type { Yardstick } from './judge/yardstick-client.ts';
import { yardstickOf } from './judge/yardstick-client.ts';
import type { AttackVendor } from './wire/vendor.ts';
import { startAttackVendor } from './wire/vendor.ts';

/** Limits of the tables, small enough that a case which runs into one is over soon. */
const usualAttemptSeconds = 2;
export const requestSeconds = 20;
const attackers = 8;

export interface World {
  readonly vendor: AttackVendor;
  readonly postgres: FaultyWire;
  readonly database: TestDatabase;
  readonly limitBytes: number;
  readonly users: readonly User[];
  /** Nobody attacks in this user's name. */
  readonly bystander: User;
  gateway(): GatewayUnderTest;
  witness(): Witness;
  /** The same gateway on the same stores and machine, which nobody attacks. */
  readonly control: GatewayUnderTest;
  readonly yardstick: Yardstick;
  /** The service key of a case, and what must be done before it is sent. */
  keyFor(auth: Auth, index: number): Promise<string | null>;
  query<Row extends pg.QueryResultRow>(text: string, values: readonly unknown[]): Promise<Row[]>;
  /** Ends the gateway and starts another one on the same data. */
  renew(): Promise<void>;
  close(): Promise<void>;
}

/** A user with keys for all vendors and for a server of their own. */
async function registerTenant(url: string, vendor: AttackVendor): Promise<User> {
  const user = await registerWithKeys(url);
  const own = { provider: 'self_hosted', api_key: 'none', declared_region: 'here', base_url: vendor.url };
  await addKey(user, own);
  return user;
}

export interface WorldOptions {
  /** Of the tables, beyond the defaults. */
  readonly limits?: Readonly<Record<string, number>>;
  /** How long an attempt, and a silence of a stream, may last: a busy machine makes a vendor of ours slow. */
  readonly attemptSeconds?: number;
}

export async function makeWorld({
  limits = {},
  attemptSeconds = usualAttemptSeconds,
}: WorldOptions = {}): Promise<World> {
  const [database, vendor] = await Promise.all([createDatabase(), startAttackVendor()]);
  const postgres = await startFaultyWire(database.url);
  const { env, limitBytes } = chartProcess();
  const settings = {
    ...env,
    DATABASE_URL: through(postgres, database.url),
    GW_SEALING_KEYS: sealingKeys(),
    ...Object.fromEntries(
      ['OPENAI', 'ANTHROPIC', 'TOGETHER', 'SARVAM'].map((name) => [`GW_${name}_BASE_URL`, vendor.url]),
    ),
  };
  const start = async (preload: string): Promise<GatewayUnderTest> => {
    const started = await startGateway({
      database,
      vendors: {} as VendorPack,
      tables: tables({
        timeouts: {
          attempt_seconds: attemptSeconds,
          stream_idle_seconds: attemptSeconds,
          request_seconds: Math.max(requestSeconds, attemptSeconds),
        },
        limits,
      }),
      env: settings,
      preload: pathToFileURL(join(import.meta.dirname, preload)).href,
    });
    await untilReadyIs(started, 200);
    return started;
  };
  let gateway = await start('witness.ts');
  const control = await start('yardstick.ts');
  let witness = witnessOf(gateway.process);
  const users: User[] = [];
  for (let index = 0; index < attackers; index += 1) users.push(await registerTenant(gateway.url, vendor));
  const bystander = await registerTenant(gateway.url, vendor);
  const client = new pg.Pool({ connectionString: database.url, max: 2 });
  return {
    vendor,
    postgres,
    database,
    limitBytes,
    users,
    bystander,
    gateway: () => gateway,
    witness: () => witness,
    control,
    yardstick: yardstickOf(control.process),
    keyFor: async (auth, index) => {
      const user = users[index % users.length] as User;
      if (auth === 'none') return null;
      if (auth === 'malformed') return 'gw_this-is-no-key';
      if (auth === 'unknown') return newServiceKey(randomBytes(32));
      if (auth === 'forgotten') await client.query('SELECT pg_notify($1, $2)', [keyChangesChannel, user.id]);
      return user.key;
    },
    query: async (text, values) => (await client.query(text, [...values])).rows,
    renew: async () => {
      await gateway.stop('SIGKILL');
      postgres.heal();
      gateway = await start('witness.ts');
      witness = witnessOf(gateway.process);
    },
    close: async () => {
      await client.end();
      await Promise.all([gateway.stop(), control.stop()]);
      await Promise.all([postgres.close(), vendor.close()]);
      await database.drop();
    },
  };
}

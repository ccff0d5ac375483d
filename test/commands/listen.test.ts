import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runCommand } from './run-command.ts';

/** Nobody listens where commands look for the database, and no machine has the address (RFC 5737). */
const databaseUrl = 'postgres://u:p@127.0.0.1:1/d';
const nobodysAddress = '192.0.2.1';

const owner = createServer();
let taken: string;
let folder: string;
beforeAll(async () => {
  await once(owner.listen({ host: '127.0.0.1', port: 0 }), 'listening');
  taken = String((owner.address() as AddressInfo).port);
  folder = await mkdtemp(join(tmpdir(), 'listen-'));
});
afterAll(async () => {
  owner.close();
  await rm(folder, { recursive: true });
});

interface Case {
  readonly what: string;
  readonly args: () => readonly string[];
  readonly env?: () => Record<string, string>;
  readonly says: () => string;
}

const settings = (changed: Record<string, string>): Record<string, string> => ({
  ...{ DATABASE_URL: databaseUrl, GW_DATA_DIR: folder },
  GW_SEALING_KEYS: `v1:${Buffer.alloc(32).toString('base64')}`,
  ...{ GW_HOST: '127.0.0.1', PORT: '0', GW_ADMIN_HOST: '127.0.0.1', GW_ADMIN_PORT: '0' },
  ...changed,
});

const serve = (): readonly string[] => ['serve'];

test.each<Case>([
  {
    what: 'the port of the API is taken',
    args: serve,
    env: () => settings({ PORT: taken }),
    says: () => `serve: PORT: cannot listen on 127.0.0.1:${taken}: the port is in use (EADDRINUSE).`,
  },
  {
    what: 'the port of the admin API is taken',
    args: serve,
    env: () => settings({ GW_ADMIN_PORT: taken }),
    says: () => `serve: GW_ADMIN_PORT: cannot listen on 127.0.0.1:${taken}: the port is in use (EADDRINUSE).`,
  },
  {
    what: 'the address of the API is of another machine',
    args: serve,
    env: () => settings({ GW_HOST: nobodysAddress, PORT: '8080' }),
    says: () =>
      'serve: GW_HOST: cannot listen on 192.0.2.1:8080: this machine has no such address (EADDRNOTAVAIL).',
  },
  {
    what: 'the address of the admin API is of another machine',
    args: serve,
    env: () => settings({ GW_ADMIN_HOST: nobodysAddress, GW_ADMIN_PORT: '9090' }),
    says: () =>
      'serve: GW_ADMIN_HOST: cannot listen on 192.0.2.1:9090: this machine has no such address (EADDRNOTAVAIL).',
  },
  {
    what: 'the port of the demo is taken',
    args: () => ['demo', taken],
    says: () => `demo: [port]: cannot listen on 127.0.0.1:${taken}: the port is in use (EADDRINUSE).`,
  },
  {
    what: 'the address of the demo is of another machine',
    args: () => ['demo', '8081', nobodysAddress],
    says: () =>
      'demo: [host]: cannot listen on 192.0.2.1:8081: this machine has no such address (EADDRNOTAVAIL).',
  },
])('a bad setting is named, and no store is blamed, when $what', async ({ args, env, says }) => {
  const { code, stderr } = await runCommand(args(), env?.());
  expect({ code, stderr }).toEqual({ code: 1, stderr: `model-gateway ${says()}\n` });
});

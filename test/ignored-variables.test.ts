import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { environmentSchema, fileVariants } from '../src/environment.ts';
import { ignoredVariables } from '../src/ignored-variables.ts';
import { runCommand } from './commands/run-command.ts';

const settings = [...Object.keys(environmentSchema.shape), ...fileVariants.map((name) => `${name}_FILE`)];

test('no setting is ignored, nor what begins otherwise', () => {
  const set = [...settings, 'PATH', 'OTEL_EXPORTER', 'PROT', 'gw_host', 'MY_GW_HOST'].map((name) => [
    name,
    'x',
  ]);
  expect(ignoredVariables(Object.fromEntries(set))).toEqual([]);
});

test.each<[name: string, nearest: string | null]>([
  ['GW_DRAIN_SECOND', 'GW_DRAIN_SECONDS'],
  ['GW_DARIN_SECONDS', 'GW_DRAIN_SECONDS'],
  ['GW_DRAIN_SECS', 'GW_DRAIN_SECONDS'],
  ['GW_HOTS', 'GW_HOST'],
  ['GW_host', null],
  ['GW_SEALING_KEY', 'GW_SEALING_KEYS'],
  ['GW_SEALING_KEY_FILE', 'GW_SEALING_KEYS_FILE'],
  ['GW_ADMIN_TOKENFILE', 'GW_ADMIN_TOKEN_FILE'],
  // Of settings without the prefix.
  ['GW_PORT', 'PORT'],
  ['GW_DATABASE_URL', 'DATABASE_URL'],
  ['GW_REDIS_URL_FILE', 'REDIS_URL_FILE'],
  // Another word altogether.
  ['GW_RATE_LIMT', null],
  ['GW_X', null],
  ['GW_', null],
])('%s is ignored; meant is perhaps %s', (name, nearest) => {
  expect(ignoredVariables({ [name]: '8080' })).toEqual([{ name, nearest }]);
});

test('what is set to nothing is not set', () => {
  expect(ignoredVariables({ GW_RATE_LIMT: '' })).toEqual([]);
});

test.each([
  { service: 'gw', prefix: 'GW' },
  { service: 'gw-api', prefix: 'GW_API' },
])('what Kubernetes sets for a Service "$service" is nobody\'s mistake', ({ prefix }) => {
  const links = {
    SERVICE_HOST: '10.96.0.7',
    SERVICE_PORT: '8080',
    SERVICE_PORT_HTTP: '8080',
    PORT: 'tcp://10.96.0.7:8080',
    PORT_8080_TCP: 'tcp://10.96.0.7:8080',
    PORT_8080_TCP_PROTO: 'tcp',
    PORT_8080_TCP_PORT: '8080',
    PORT_8080_TCP_ADDR: '10.96.0.7',
    PORT_53_UDP: 'udp://10.96.0.7:53',
    PORT_53_UDP_ADDR: '10.96.0.7',
  };
  const set = Object.entries(links).map(([name, value]) => [`${prefix}_${name}`, value]);
  expect(ignoredVariables(Object.fromEntries(set))).toEqual([]);
});

test('a start names them, and settings without effect, a line each, without what they were set to', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'ignored-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const { stdout } = await runCommand(['serve'], {
    ...{ DATABASE_URL: 'postgres://u:p@127.0.0.1:1/d', GW_DATA_DIR: folder, GW_LOG_LEVEL: 'warn' },
    GW_SEALING_KEYS: `v1:${Buffer.alloc(32).toString('base64')}`,
    // Nothing can listen there, so it ends by itself.
    GW_HOST: '192.0.2.1',
    ...{ GW_ADMIN_TOKN: 'a-secret', GW_RATE_LIMT: 'a-secret', GW_SERVICE_HOST: '10.96.0.7' },
    GW_REGISTRATION_TOKEN: 'a-secret-of-some-length',
  });
  const lines = stdout.split('\n').filter((line) => line.includes('are ignored'));
  expect(lines.map((line) => JSON.parse(line) as object)).toEqual([
    {
      ...{ level: 'warn', time: expect.any(String), msg: 'settings without effect are ignored' },
      ignored: ['GW_REGISTRATION_TOKEN (only with GW_REGISTRATION=token)'],
    },
    {
      ...{ level: 'warn', time: expect.any(String), msg: 'variables that are no settings are ignored' },
      ignored: ['GW_ADMIN_TOKN (GW_ADMIN_TOKEN?)', 'GW_RATE_LIMT'],
    },
  ]);
  expect(stdout).not.toContain('a-secret');
});

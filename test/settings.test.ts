import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readNetworks } from '../src/core/net/network.ts';
import { vendorNames } from '../src/core/provider-name.ts';
import { environmentSchema } from '../src/environment.ts';
import { readSettings, SettingsError } from '../src/settings.ts';

const keyOf = (byte: number): string => Buffer.alloc(32, byte).toString('base64');

function mistake(environment: Record<string, string>): string {
  try {
    readSettings(environment);
  } catch (error) {
    if (error instanceof SettingsError) return error.message;
    throw error;
  }
  throw new Error('was accepted');
}

describe('an empty environment', () => {
  test('has the documented defaults', () => {
    expect(readSettings({})).toMatchObject({
      host: '0.0.0.0',
      port: 8080,
      adminHost: '0.0.0.0',
      adminPort: 9090,
      profile: 'server',
      databaseUrl: null,
      databaseDirectUrl: null,
      redisUrl: null,
      sealingKeys: [],
      tablesFile: null,
      tablesConfigMap: null,
      vendorBaseUrls: {},
      outboundPolicy: 'allow-private',
      outboundAllowed: [],
      dataDir: './data',
      spoolDir: './data/spool',
      spoolBytes: 256 * 1024 * 1024,
      spoolFull: 'refuse',
      drainDelayMs: 0,
      drainMs: 300_000,
      bodyLimitBytes: 20 * 1024 * 1024,
      trustedProxyHops: 0,
      registration: 'open',
      registrationToken: null,
      registrationsPerMinute: 0,
      registrationsPerMinutePerIp: 0,
      logLevel: 'info',
      tracing: { enabled: false, serviceName: 'model-gateway', auto: false, propagateTo: [] },
    });
  });

  test('is what variables set to nothing mean', () => {
    expect(readSettings({ PORT: '', DATABASE_URL: '', GW_REGISTRATION: '', GW_OPENAI_BASE_URL: '' })).toEqual(
      readSettings({}),
    );
  });
});

test('what is set is read', () => {
  const settings = readSettings({
    PORT: '0',
    GW_DATA_DIR: '/var/lib/gw',
    DATABASE_URL: 'postgres://pooler/db',
    DATABASE_DIRECT_URL: 'postgres://server/db',
    GW_TABLES_CONFIGMAP: 'models/gateway-tables',
    GW_SARVAM_BASE_URL: 'http://127.0.0.1:9000/x',
    GW_OUTBOUND_ALLOWED_CIDRS: '10.0.0.0/8,,fd00::/8',
    GW_DRAIN_SECONDS: '0.5',
    GW_OTEL_AUTO: '1',
    GW_MIGRATE: 'off',
  });
  expect(settings).toMatchObject({
    port: 0,
    spoolDir: '/var/lib/gw/spool',
    databaseUrl: 'postgres://pooler/db',
    databaseDirectUrl: 'postgres://server/db',
    tablesConfigMap: { namespace: 'models', name: 'gateway-tables' },
    vendorBaseUrls: { sarvam: 'http://127.0.0.1:9000/x' },
    outboundAllowed: readNetworks('10.0.0.0/8,fd00::/8'),
    drainMs: 500,
    tracing: { enabled: false, auto: true },
    migrateAtBoot: false,
  });
});

test('the entry of a watched ConfigMap may be named', () => {
  const { tablesConfigMap } = readSettings({ GW_TABLES_CONFIGMAP: 'models/gateway-tables/routing.yaml' });
  expect(tablesConfigMap).toEqual({ namespace: 'models', name: 'gateway-tables', entry: 'routing.yaml' });
});

test.each(vendorNames)('%s may have another address, and then no other vendor has', (vendor) => {
  const address = 'http://127.0.0.1:9000';
  const { vendorBaseUrls } = readSettings({ [`GW_${vendor.toUpperCase()}_BASE_URL`]: address });
  expect(vendorBaseUrls).toEqual({ [vendor]: address });
});

test('the direct database is the database where no other is named', () => {
  expect(readSettings({ DATABASE_URL: 'postgres://a/b' }).databaseDirectUrl).toBe('postgres://a/b');
});

describe('sealing keys', () => {
  test('are read in order: the first one seals', () => {
    const { sealingKeys } = readSettings({ GW_SEALING_KEYS: `new:${keyOf(2)}, old:${keyOf(1)},` });
    expect(sealingKeys).toEqual([
      { id: 'new', key: Buffer.alloc(32, 2) },
      { id: 'old', key: Buffer.alloc(32, 1) },
    ]);
  });

  test.each([
    ['without an id', keyOf(1)],
    ['too short', `a:${Buffer.alloc(31).toString('base64')}`],
    ['too long', `a:${Buffer.alloc(33).toString('base64')}`],
    ['of one id twice', `a:${keyOf(1)},a:${keyOf(2)}`],
    ['with an id that is no word', `a b:${keyOf(1)}`],
    ['that are a passphrase', 'a:correct horse battery staple'],
    ['with a third part', `a:${keyOf(1)}:oops`],
    ['with an empty third part', `a:${keyOf(1)}:`],
    ['with characters before the key', `a:!!${keyOf(1)}`],
    ['with characters behind the key', `a:${keyOf(1)}??`],
    ['with a space in the key', `a:${keyOf(1).slice(0, 8)} ${keyOf(1).slice(8)}`],
    ['without the padding', `a:${keyOf(1).slice(0, -1)}`],
    ['with spare bits set', `a:${keyOf(1).slice(0, -2)}F=`],
    ['in the alphabet of URLs', `a:${Buffer.alloc(32, 255).toString('base64url')}=`],
  ])('%s stop the start, without being shown', (_name, text) => {
    const message = mistake({ GW_SEALING_KEYS: text });
    expect(message).toMatch(/^GW_SEALING_KEYS must be kid:base64/);
    expect(message).not.toContain(text);
    expect(message).not.toContain('\n');
  });
});

describe('a mistake stops the start with one line that names it', () => {
  test.each<[name: string, value: string]>([
    ['GW_PROFILE', 'edge'],
    ['GW_TABLES_CONFIGMAP', 'no-namespace'],
    ['GW_TABLES_CONFIGMAP', 'models/gateway-tables/'],
    ['GW_TABLES_CONFIGMAP', 'models/gateway-tables/a/b'],
    ['GW_OPENAI_BASE_URL', 'ftp://host'],
    ['GW_OPENAI_BASE_URL', 'api.openai.com'],
    ['GW_OPENAI_BASE_URL', 'https://user@api.openai.com'],
    ['GW_TOGETHER_BASE_URL', 'https://:s3cret@api.openai.com'],
    ['GW_ANTHROPIC_BASE_URL', 'https://api.anthropic.com/?version=1'],
    ['GW_SARVAM_BASE_URL', 'https://api.sarvam.ai/#v1'],
    ['GW_SARVAM_BASE_URL', 'https://api.sarvam.ai/?'],
    ['GW_ADMIN_PORT', '8080'],
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'foo'],
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'collector:4318'],
    ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'http://'],
    ['GW_OUTBOUND_POLICY', 'public'],
    ['GW_OUTBOUND_ALLOWED_CIDRS', '10.0.0.0/33'],
    ['GW_SPOOL_FULL', 'panic'],
    ['GW_REGISTRATION', 'yes'],
    ['GW_REGISTRATION_TOKEN', 'short'],
    ['GW_REGISTRATION_TOKEN', 'a token of several words'],
    ['GW_REGISTRATION_TOKEN', 'x'.repeat(513)],
    ['GW_OTEL_AUTO', 'on'],
    ['GW_LOG_LEVEL', 'verbose'],
  ])('%s=%s', (name, value) => {
    const message = mistake({ [name]: value });
    expect(message.startsWith(`${name}: `)).toBe(true);
    expect(message).not.toContain('\n');
  });

  /** One of these is within the bounds of each number; of a text none becomes one. */
  const numbers = Object.entries(environmentSchema.shape)
    .filter(([, schema]) => ['10', '4096'].some((text) => typeof schema.safeParse(text).data === 'number'))
    .map(([name]) => name);

  test.each(numbers)('%s that is no number, with the text that was given', (name) => {
    for (const text of ['abc', '20MiB', '1,000', 'NaN', '1e999'])
      expect(mistake({ [name]: text })).toBe(`${name}: must be a number, not "${text}"`);
    expect(mistake({ [name]: '-1' })).toMatch(new RegExp(`^${name}: must be at least \\d+, not "-1"$`));
  });

  test('every setting whose default is a number is among them', () => {
    const withDefault = Object.entries(environmentSchema.parse({})).filter(
      ([, value]) => typeof value === 'number',
    );
    expect(withDefault.length).toBeGreaterThan(10);
    expect(numbers).toEqual(expect.arrayContaining(withDefault.map(([name]) => name)));
  });

  test.each([
    ['PORT', '65536', 'must be at most 65535'],
    ['GW_DATABASE_POOL', '1', 'must be at least 2'],
    ['GW_TRUSTED_PROXY_HOPS', '1.5', 'must be a whole number'],
    ['GW_SPOOL_BYTES', '1e300', 'must be at most 9007199254740991'],
  ])('%s=%s, with what it must be', (name, text, wanted) => {
    expect(mistake({ [name]: text })).toBe(`${name}: ${wanted}, not "${text}"`);
  });

  test('registration by token without a token', () => {
    expect(mistake({ GW_REGISTRATION: 'token' })).toMatch(/GW_REGISTRATION_TOKEN/);
  });
});

test.each([
  [{ PORT: '9000', GW_ADMIN_PORT: '9000' }, 'GW_ADMIN_PORT: 9000 is PORT already; keep the two apart'],
  [
    { GW_PROFILE: 'sidecar', GW_ADMIN_PORT: '8080' },
    'GW_ADMIN_PORT: 8080 is PORT already; keep the two apart',
  ],
  [{ PORT: '0', GW_ADMIN_PORT: '0' }, null],
  [{ GW_ADMIN_PORT: '8080', GW_HOST: '10.0.0.1', GW_ADMIN_HOST: '127.0.0.1' }, null],
  [{ GW_ADMIN_PORT: '8080', GW_HOST: '10.0.0.1', GW_ADMIN_HOST: '::' }, /^GW_ADMIN_PORT/],
  [{ GW_ADMIN_PORT: '8080', GW_HOST: '0.0.0.0', GW_ADMIN_HOST: '::1' }, null],
  [{ GW_ADMIN_PORT: '8080', GW_HOST: '0.0.0.0', GW_ADMIN_HOST: '::' }, /^GW_ADMIN_PORT/],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: ' https://collector/otlp ' }, null],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'foo', OTEL_SDK_DISABLED: 'true' }, null],
  [{ OTEL_EXPORTER_OTLP_PROTOCOL: 'whatever' }, null],
  [
    { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://c', OTEL_EXPORTER_OTLP_PROTOCOL: 'http' },
    'OTEL_EXPORTER_OTLP_PROTOCOL: must be http/protobuf, http/json, grpc',
  ],
  [
    { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://c', OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/protobuff' },
    'OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: must be http/protobuf, http/json, grpc',
  ],
  [
    {
      OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4317',
      OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc',
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://collector:4318/v1/traces',
      OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/protobuf ',
    },
    null,
  ],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4317', OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }, null],
  [
    {
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'collector:4317',
      OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc',
      OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/json',
    },
    /^OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: must be a URL/,
  ],
])('%j together', (environment, message) => {
  if (message === null) expect(readSettings(environment)).toMatchObject({ idle: [] });
  else if (typeof message === 'string') expect(mistake(environment)).toBe(message);
  else expect(mistake(environment)).toMatch(message);
});

const idleToken = 'a-token-of-some-length';
test.each<[environment: Record<string, string>, idle: readonly string[]]>([
  [{ GW_REGISTRATION_TOKEN: idleToken }, ['GW_REGISTRATION_TOKEN']],
  [{ GW_REGISTRATION: 'closed', GW_REGISTRATION_TOKEN: idleToken }, ['GW_REGISTRATION_TOKEN']],
  [{ GW_REGISTRATION: 'token', GW_REGISTRATION_TOKEN: idleToken }, []],
  [{ GW_SERVICE_KEY: 'k', GW_PROVIDER_KEYS_FILE: '/keys' }, ['GW_SERVICE_KEY', 'GW_PROVIDER_KEYS_FILE']],
  [{ GW_PROFILE: 'sidecar', GW_SERVICE_KEY: 'k', GW_PROVIDER_KEYS_FILE: '/keys' }, []],
  [{ GW_PROFILE: 'sidecar', DATABASE_URL: 'postgres://a/b', GW_SERVICE_KEY: 'k' }, ['GW_SERVICE_KEY']],
  [{ GW_TABLES_FILE: '/t.yaml' }, []],
  [{ GW_TABLES_FILE: '/t.yaml', GW_TABLES_CONFIGMAP: 'a/b' }, ['GW_TABLES_FILE']],
])('%j has settings that count for nothing: %j', (environment, idle) => {
  expect(readSettings(environment).idle.map(({ name }) => name)).toEqual(idle);
});

describe('proxies', () => {
  test('are read under either spelling, and are none by default', () => {
    expect(readSettings({}).egress).toMatchObject({ https: null, http: null });
    // Of no interest without a proxy, whatever a platform writes there.
    expect(readSettings({ NO_PROXY: '10.*' }).egress.bypass).toEqual([]);
    expect(readSettings({ NO_PROXY: 'a,b', no_proxy: 'b,a' }).egress.bypass).toEqual([]);
    const [upper, lower] = [
      { HTTPS_PROXY: 'http://p:1', HTTP_PROXY: 'http://q:2', NO_PROXY: 'in.example' },
      { https_proxy: 'http://p:1', http_proxy: 'http://q:2', no_proxy: 'in.example' },
    ];
    const { egress } = readSettings(upper);
    expect(egress).toMatchObject({ https: { host: 'p' }, http: { host: 'q' }, residency: 'global' });
    expect(egress.bypass).toHaveLength(1);
    expect(readSettings(lower).egress).toEqual(egress);
    expect(readSettings({ ...upper, ...lower }).egress).toEqual(egress);
    const there = readSettings({ ...upper, GW_EGRESS_PROXY_REGION: 'india' });
    expect(there.egress.residency).toBe('india');
  });

  test.each([
    [{ HTTPS_PROXY: 'http://u:s3cret@a', https_proxy: 'http://u:s3cret@b' }, /^HTTPS_PROXY and https_proxy/],
    [{ HTTPS_PROXY: 'http://a', NO_PROXY: 'a,b', no_proxy: 'b,a' }, /^NO_PROXY and no_proxy/],
    [{ HTTPS_PROXY: 'socks5://u:s3cret@a' }, /^HTTPS_PROXY must be/],
    [{ http_proxy: 'ftp://u:s3cret@a' }, /^HTTP_PROXY must be/],
    [{ HTTP_PROXY: 'http://u:s3cret@a', NO_PROXY: '10.*' }, /^NO_PROXY has the entry "10\.\*"/],
    [{ GW_EGRESS_PROXY_REGION: 'bharat' }, /^GW_EGRESS_PROXY_REGION: /],
  ])('%j stops the start', (environment, message) => {
    expect(mistake(environment)).toMatch(message);
    expect(mistake(environment)).not.toContain('s3cret');
  });
});

test('the registration token cannot be printed by accident', () => {
  const settings = readSettings({
    GW_REGISTRATION: 'token',
    GW_REGISTRATION_TOKEN: 'a-token-of-some-length',
  });
  expect(JSON.stringify(settings)).not.toContain('a-token-of-some-length');
  expect(settings.registrationToken?.reveal()).toBe('a-token-of-some-length');
});

describe('a secret in a file', () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'gw-settings-'));
    writeFileSync(join(folder, 'url'), 'postgres://file/db\n');
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  test('is read without its line end', () => {
    expect(readSettings({ DATABASE_URL_FILE: join(folder, 'url') }).databaseUrl).toBe('postgres://file/db');
  });

  test('beside the variable itself is a mistake', () => {
    const both = { DATABASE_URL: 'postgres://a/b', DATABASE_URL_FILE: join(folder, 'url') };
    expect(mistake(both)).toBe('DATABASE_URL and DATABASE_URL_FILE are both set; keep one.');
  });

  test('that is not there is a mistake', () => {
    expect(mistake({ REDIS_URL_FILE: join(folder, 'nothing') })).toMatch(
      /^REDIS_URL_FILE: cannot read .*ENOENT/,
    );
  });
});

test('the Kubernetes API is where the kubelet says, and at its name', () => {
  const read = (environment: NodeJS.ProcessEnv) =>
    readSettings({ DATABASE_URL: 'postgres://db/x', ...environment }).kubernetesApi;
  expect(read({ KUBERNETES_SERVICE_HOST: '10.96.0.1', KUBERNETES_SERVICE_PORT: '6443' })).toEqual([
    { host: '10.96.0.1', port: 6443 },
    { host: 'kubernetes.default.svc', port: 443 },
  ]);
  expect(read({})).toEqual([]);
});

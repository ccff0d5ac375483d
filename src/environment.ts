import { z } from 'zod';
import { egressVariables } from './egress-settings.ts';
import { tracingVariables } from './tracing-settings.ts';

const port = z.coerce.number().int().min(0).max(65535);
const seconds = z.coerce.number().min(0).max(86_400);
const count = z.coerce.number().int();
const text = z.string().optional();
/** Where a vendor's address begins: its path is put behind it. */
const httpUrl = z.url({ protocol: /^https?$/, abort: true }).refine((given) => {
  const { username, password } = new URL(given);
  return username + password === '' && !/[?#]/.test(given);
}, 'must be an address without a user, a query and a fragment');

/** Every setting with its default and its meaning, of which `npm run generate` makes the table of docs/settings.md. */
export const environmentSchema = z.object({
  PORT: port.default(8080).describe('port of the API; 0 takes a free one'),
  GW_HOST: text.describe('address of the API; else `0.0.0.0`, and `127.0.0.1` for a sidecar'),
  GW_ADMIN_PORT: port
    .default(9090)
    .describe('port of `/healthz`, `/readyz`, `/metrics`, `/openapi.json`, `/admin`; keep it from clients'),
  GW_ADMIN_HOST: z.string().default('0.0.0.0').describe('its address'),
  GW_PROFILE: z
    .enum(['server', 'sidecar'])
    .default('server')
    .describe('`sidecar`: beside one application, a database is optional'),
  DATABASE_URL: text.describe(
    'Postgres, TLS included ([0014](docs/decisions/0014-two-postgres-drivers.md)); required outside `npm start`',
  ),
  DATABASE_DIRECT_URL: text.describe('a connection past a transaction-mode pooler; else `DATABASE_URL`'),
  // From 2 on no user has them all.
  GW_DATABASE_POOL: count
    .min(2)
    .max(200)
    .default(10)
    .describe('connections for accounts and keys, at least 2 (7 more serve logs, 1 listens)'),
  REDIS_URL: text.describe(
    'response cache and shared limits: `redis://` or `rediss://`, one server, sentinels or a cluster ([forms](docs/operations.md#redis)); else in memory',
  ),
  GW_CACHE_MEMORY_BYTES: count
    .min(0)
    .optional()
    .describe(
      'size of the cache in memory, by default an eighth of `--max-old-space-size`, 64 MiB at most; a user with more than half of it gives way to others',
    ),
  GW_SEALING_KEYS: text.describe(
    '`kid:base64(32 bytes)[,…]`: the first seals, all open; required outside `npm start`',
  ),
  GW_TABLES_FILE: text.describe('tables document; else the shipped one'),
  GW_TABLES_CONFIGMAP: z
    .string()
    .regex(/^[a-z0-9-]+\/[a-z0-9.-]+(?:\/[\w.-]+)?$/, 'must be namespace/name or namespace/name/entry')
    .optional()
    .describe(
      '`namespace/name` of a ConfigMap that is watched through the Kubernetes API, or `namespace/name/entry`; without one its entry `tables.yaml`, or the only one',
    ),
  GW_OPENAI_BASE_URL: httpUrl.optional().describe("another address for OpenAI; the vendor's path is added"),
  GW_ANTHROPIC_BASE_URL: httpUrl.optional().describe('the same for Anthropic'),
  GW_TOGETHER_BASE_URL: httpUrl.optional().describe('the same for Together'),
  GW_SARVAM_BASE_URL: httpUrl
    .optional()
    .describe('the same for Sarvam; it counts as in India, so requests that must stay there go to it'),
  GW_UPSTREAM_CLIENT: z
    .enum(['own', 'undici'])
    .default('own')
    .describe('`undici`: the HTTP client to providers of the release before, for one release'),
  GW_OUTBOUND_POLICY: z
    .enum(['public-only', 'allow-private'])
    .default('allow-private')
    .describe("`public-only`: users' endpoints may not be in private networks"),
  GW_OUTBOUND_ALLOWED_CIDRS: z
    .string()
    .default('')
    .describe(
      'exceptions to `public-only`, and link-local networks to open at all, comma-separated: `10.0.0.0/8`, or one port of it: `10.0.0.0/8:8000`, `[fd00::/8]:8000`',
    ),
  ...egressVariables,
  GW_SPOOL_DIR: text.describe('where log rows wait for Postgres; else `spool` in the data folder'),
  GW_SPOOL_BYTES: count
    .min(4096)
    .default(256 * 1024 * 1024)
    .describe('its size at most'),
  GW_SPOOL_FULL: z
    .enum(['refuse', 'drop'])
    .default('refuse')
    .describe('full and Postgres away: `refuse` new chat, or `drop` rows to stdout'),
  GW_LOG_RETENTION_DAYS: count
    .min(1)
    .max(3650)
    .default(90)
    .describe('request logs older than this are dropped by the week'),
  GW_STORAGE_REGION: z
    .string()
    .regex(/^[\x21-\x7e]{1,128}$/, 'must be a name without spaces, at most 128 characters')
    .optional()
    .describe(
      'where Postgres keeps rows, in your own words (`ap-south-1`): named where rows are shown as evidence',
    ),
  GW_EVIDENCE_KEY: text.describe(
    'Ed25519 private key (PEM) that signs what `report` writes; `evidence-key` makes one. Gateways need none',
  ),
  GW_DATA_DIR: z.string().default('./data').describe('spool; data of `npm start`'),
  GW_MIGRATE: z
    .enum(['boot', 'off'])
    .default('boot')
    .describe('`off`: the schema is brought up by `migrate`'),
  GW_DRAIN_DELAY_SECONDS: seconds
    .default(0)
    .describe(
      'after SIGTERM: how long the listener still accepts; then, how long a kept connection may be silent',
    ),
  GW_DRAIN_SECONDS: seconds.default(300).describe('then: how long streams may finish'),
  GW_BODY_LIMIT_BYTES: count
    .min(1024)
    .default(20 * 1024 * 1024)
    .describe(
      'largest chat body; other routes take 64 KiB, those of the admin API 16 KiB. Bodies over 64 KiB share three sixteenths of the heap by what they cost it (two to four times their bytes and 80 for each value), smaller ones as much, and nobody takes more than is left for others; beyond it 503',
    ),
  GW_TRUSTED_PROXY_HOPS: count
    .min(0)
    .max(16)
    .default(0)
    .describe('own proxies in front: how much of X-Forwarded-For is believed'),
  GW_REGISTRATION: z
    .enum(['open', 'token', 'closed'])
    .default('open')
    .describe('`token` (needs the next one) or `closed`'),
  GW_REGISTRATION_TOKEN: z
    .string()
    .regex(/^[!-~]{16,512}$/, 'must be 16 to 512 printable ASCII characters without spaces')
    .optional()
    .describe('16 to 512 characters, sent as a bearer token'),
  GW_ADMIN_TOKEN: z
    .string()
    .regex(/^[!-~]{32,512}$/, 'must be 32 to 512 printable ASCII characters without spaces')
    .optional()
    .describe(
      'opens the admin API on the admin port to whoever sends it as a bearer token, 32 to 512 characters; without it there is none. Takes up to 3 more connections to Postgres',
    ),
  GW_REGISTRATIONS_PER_MINUTE: count
    .min(0)
    .default(0)
    .describe('limit for all together, over all replicas where there is Redis; 0: none'),
  GW_REGISTRATIONS_PER_MINUTE_PER_IP: count
    .min(0)
    .default(0)
    .describe('the same per client: an IPv4 address, or the /64 of an IPv6 one; 0: none'),
  GW_MAX_EVENT_LOOP_DELAY_MS: count
    .min(0)
    .default(200)
    .describe('beyond it requests get 503; 0: not watched'),
  GW_MAX_HEAP_BYTES: count
    .min(0)
    .optional()
    .describe(
      'heap in use beyond which requests get 503; by default 85 % of `--max-old-space-size`; 0: not watched',
    ),
  GW_MAX_MEMORY_BYTES: count
    .min(0)
    .optional()
    .describe(
      'memory of the process, pages of files left out, beyond which requests get 503; by default 85 % of the container’s limit; 0: not watched',
    ),
  GW_LOG_LEVEL: z
    .enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'])
    .default('info')
    .describe('fatal, error, warn, info, debug, trace, silent'),
  GW_SERVICE_KEY: text.describe('of a sidecar without a database: the one service key (`new-key` makes one)'),
  GW_PROVIDER_KEYS_FILE: text.describe(
    'of a sidecar without a database: YAML list of provider keys, as `POST /v1/keys` takes them',
  ),
  ...tracingVariables,
});

export type Environment = z.output<typeof environmentSchema>;

/** Secrets that may be read from a file named by `<NAME>_FILE`. */
export const fileVariants = [
  'GW_SEALING_KEYS',
  'DATABASE_URL',
  'DATABASE_DIRECT_URL',
  'REDIS_URL',
  'HTTPS_PROXY',
  'HTTP_PROXY',
  'GW_REGISTRATION_TOKEN',
  'GW_ADMIN_TOKEN',
  'GW_SERVICE_KEY',
  'GW_EVIDENCE_KEY',
];

/**
 * The first mistake of what was `given`, in one line that names the setting; of a number with the text that was given,
 * since no secret is one.
 */
export function mistakeIn(error: z.ZodError, given: Readonly<Record<string, string | undefined>>): string {
  const [issue] = error.issues;
  const name = String(issue?.path[0]);
  return `${name}: ${wantedNumber(issue, given[name]) ?? issue?.message}`;
}

/** What is asked of a number that was given as `text`; null where the mistake is of another kind. */
function wantedNumber(issue: z.core.$ZodIssue | undefined, text: string | undefined): string | null {
  const not = `not ${JSON.stringify(text)}`;
  if (issue?.code === 'invalid_type') {
    if (issue.expected === 'number') return `must be a number, ${not}`;
    return issue.expected === 'int' ? `must be a whole number, ${not}` : null;
  }
  if (issue?.code === 'too_small' && issue.origin === 'number')
    return `must be at least ${issue.minimum}, ${not}`;
  const isTooBig = issue?.code === 'too_big' && (issue.origin === 'number' || issue.origin === 'int');
  return isTooBig ? `must be at most ${issue.maximum}, ${not}` : null;
}

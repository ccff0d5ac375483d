/**
 * schemathesis (PyPI) over our own OpenAPI document: requests that fit it and requests that do not, with a key, without
 * one and with a wrong one. No answer is a 5xx that nothing explains, and every answer is what the document says.
 * `GW_SCHEMA_SEED=<number>` or `random` makes another run; the seed is printed.
 */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { useGateway, useUser } from '../harness/gateway/use-gateway.ts';
import { metric } from '../harness/measure/fault-metrics.ts';
import { seedIn } from '../harness/measure/random.ts';
import type { Job, Outcome } from './schemathesis.ts';
import { runJob } from './schemathesis.ts';

const wanted = Number(process.env['GW_SCHEMA_CASES'] ?? 50_000);
const seed = seedIn('GW_SCHEMA_SEED');
/** Of all cases; the others have no key, or a wrong one. */
const withKeyShare = 0.7;
/** One generator keeps one core busy. */
const processes = 2;
/** The generator's last batch is not always full. */
const spare = 1.1;

/** Operations with something to vary, by their share of the cases. The others have one request each. */
const shares: Readonly<Record<string, number>> = {
  'POST /v1/chat/completions': 0.4,
  'POST /v1/keys': 0.17,
  'POST /v1/users': 0.1,
  'DELETE /v1/keys/{key_id}': 0.04,
  'POST /v1/service-keys': 0.02,
  'DELETE /v1/service-keys/{key_id}': 0.02,
  'POST /v1/keys/{key_id}/check': 0.02,
  'GET /v1/logs': 0.08,
  'GET /v1/logs/{log_id}': 0.02,
  'GET /v1/stats': 0.08,
  'GET /v1/models/{id}': 0.05,
  'GET /v1/keys': 0,
  'GET /v1/service-keys': 0,
  'GET /v1/models': 0,
};

/** The same of the admin API, on the admin port. All have the token: who guesses is refused for a minute. */
const adminShares: Readonly<Record<string, number>> = {
  'POST /admin/users': 0.01,
  'GET /admin/users': 0.01,
  'GET /admin/users/{user}': 0.01,
  'PATCH /admin/users/{user}': 0.02,
  'DELETE /admin/users/{user}': 0.01,
  'POST /admin/users/{user}/service-keys': 0.01,
  'DELETE /admin/users/{user}/service-keys/{key_id}': 0.01,
  'GET /admin/spend': 0.01,
};

/** Success that must have been reached, by its share of an operation's cases with a key: what is only refused proves little. */
const leastSuccess: readonly (readonly [route: string, method: string, status: number, share: number])[] = [
  ['/v1/chat/completions', 'POST', 200, 0.1],
  ['/v1/keys', 'POST', 201, 0.01],
  ['/v1/users', 'POST', 201, 0.1],
  ['/v1/logs', 'GET', 200, 0.02],
  ['/v1/stats', 'GET', 200, 0.02],
  ['/v1/keys', 'GET', 200, 0],
  ['/v1/service-keys', 'GET', 200, 0],
  ['/v1/models', 'GET', 200, 0],
];

/** The one 5xx that is explained: on a busy machine Postgres may answer too late, which is a 503 with a code of its own. */
const explained = /database_unavailable/;

const folder = mkdtempSync(join(tmpdir(), 'gw-schema-'));
const document = join(folder, 'openapi.json');
// Two generators keep the machine busy: how load is shed is tested elsewhere.
const adminToken = 'an-admin-token-of-sufficient-length';
const gateway = useGateway({ env: { GW_MAX_EVENT_LOOP_DELAY_MS: '0', GW_ADMIN_TOKEN: adminToken } });
const user = useUser(gateway);
let paths: Record<string, Record<string, unknown>>;

beforeAll(async () => {
  const text = await (await fetch(`${gateway.adminUrl}/openapi.json`)).text();
  writeFileSync(document, text);
  ({ paths } = JSON.parse(text) as { paths: typeof paths });
});

afterAll(() => rmSync(folder, { recursive: true }));

interface Caller {
  readonly caller: string;
  readonly authorization: string | null;
  readonly share: number;
}

function jobs(): Job[] {
  const callers: readonly Caller[] = [
    { caller: 'with a key', authorization: `Bearer ${user.key}`, share: withKeyShare },
    { caller: 'without a key', authorization: null, share: 0.15 },
    { caller: 'with a wrong key', authorization: `Bearer ${user.key.slice(0, -4)}AAAA`, share: 0.15 },
  ];
  const jobsOf = ({ caller, authorization, share: part }: Caller, named: typeof shares, url: string): Job[] =>
    Object.entries(named).map(([operation, share]) => ({
      name: `${operation} ${caller}`,
      operation,
      url,
      authorization,
      cases: Math.max(1, Math.ceil(wanted * spare * part * share)),
      seed,
    }));
  const operator = { caller: 'with the admin token', authorization: `Bearer ${adminToken}`, share: 1 };
  return [
    ...callers.flatMap((caller) => jobsOf(caller, shares, gateway.url)),
    ...jobsOf(operator, adminShares, gateway.adminUrl),
  ];
}

test('the shares name every operation of the document', () => {
  const all = Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  );
  expect(all.sort()).toEqual(Object.keys({ ...shares, ...adminShares }).sort());
});

test(`${wanted} generated requests get the answers that the document promises (seed ${seed})`, async () => {
  const waiting = [...jobs().entries()].sort(([, a], [, b]) => b.cases - a.cases);
  const outcomes: Outcome[] = [];
  const work = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const [index, job] = next;
      const outcome = await runJob(job, index, { document, folder });
      outcomes.push(outcome);
      process.stdout.write(
        `schemathesis: ${job.name}: ${outcome.generated} cases, ${outcome.found.length} found\n`,
      );
    }
  };
  await Promise.all(Array.from({ length: processes }, work));
  const generated = outcomes.reduce((sum, outcome) => sum + outcome.generated, 0);
  process.stdout.write(`schemathesis: ${generated} cases in all, seed ${seed}\n`);
  for (const { job, found, output } of outcomes) {
    const left = found.filter((entry) => !explained.test(entry));
    expect(left, `${job.name}\n${output}`).toEqual([]);
  }
  expect(gateway.process.exitCode).toBeNull();
  for (const [route, method, status, share] of leastSuccess) {
    const labels = [
      `http_route="${route}"`,
      `http_request_method="${method}"`,
      `http_response_status_code="${status}"`,
    ];
    const answered = await metric(gateway, `http_server_request_duration_seconds_count`, labels);
    const least = wanted * (shares[`${method} ${route}`] ?? 0) * withKeyShare * share;
    process.stdout.write(`schemathesis: ${method} ${route} was answered ${status} ${answered} times\n`);
    expect(answered, `${method} ${route} answered ${status}`).toBeGreaterThan(least);
  }
  expect(generated).toBeGreaterThanOrEqual(wanted);
});

import { expect } from 'vitest';
import { failure, tokensThen } from '../harness/vendors/vendor-plans.ts';
import { uuidPattern } from '../harness/vendors/wire-types.ts';
import type { Call, Failure } from './driver.ts';
import type { Scenario, Stage } from './stage.ts';
import { failed, seen } from './stage.ts';

/** Unlike any default, and far from what a client would wait in a test. */
const retryAfter = '37';
const shortRetryAfter = '1';
const shortRetryAfterMs = 1_000;

type Wanted = Partial<Failure> & { readonly status: 401 | 422 | 429 | 503 };

/** The error of a JSON answer and of a stream: the same class and the same facts. */
async function expectBoth(stage: Stage, wanted: Wanted, additions: Partial<Call> = {}): Promise<void> {
  for (const action of ['chat', 'stream']) {
    const error = await failed(stage, action, additions);
    expect(error, action).toMatchObject({ class: stage.client.errors[wanted.status], ...wanted, text: '' });
    expect(error.message, action).not.toBe('');
    expect(error.requestId, action).toMatch(uuidPattern);
  }
}

/** By name the vendor's own words come through; by mode they are the gateway's. */
async function expectOfVendor(
  stage: Stage,
  wanted: Wanted,
  byMode: Omit<Partial<Failure>, 'status'>,
): Promise<void> {
  if (stage.route.byMode) return await expectBoth(stage, { ...byMode, ...wanted });
  const message = expect.stringContaining(`fake vendor says ${wanted.status}`) as unknown as string;
  await expectBoth(stage, { ...wanted, message });
}

/** What goes wrong. No client repeats anything here. */
export const errorScenarios: readonly (readonly [name: string, run: Scenario])[] = [
  [
    '401',
    async (stage) => {
      await expectBoth(stage, { status: 401, type: 'authentication_error' }, { key: 'gw_wrong' });
      expect(stage.vendor.ledger).toEqual([]);
      if (stage.route.byMode) return;
      stage.everyVendor(failure(401));
      await expectOfVendor(stage, { status: 401 }, {});
    },
  ],
  [
    '422',
    async (stage) => {
      await expectBoth(stage, { status: 422, type: 'invalid_request_error' }, { temperature: 9 });
      expect(stage.vendor.ledger).toEqual([]);
      stage.everyVendor(failure(422));
      const ours = { type: 'invalid_request_error', code: 'upstream_rejected' };
      await expectOfVendor(stage, { status: 422 }, ours);
    },
  ],
  [
    '429',
    async (stage) => {
      stage.everyVendor(failure(429, { 'retry-after': retryAfter }));
      await expectOfVendor(stage, { status: 429, retryAfter }, { type: 'rate_limit_error' });
    },
  ],
  [
    '503',
    async (stage) => {
      // By mode: no vendor takes its key. By name: the vendor is down.
      stage.everyVendor(failure(stage.route.byMode ? 403 : 503));
      await expectOfVendor(stage, { status: 503 }, { type: 'service_unavailable_error' });
    },
  ],
  [
    'broken',
    async (stage) => {
      stage.vendor.always(tokensThen(3, 'reset'));
      const error = await failed(stage, 'stream');
      expect(error).toMatchObject({ class: stage.client.errors.broken, type: 'provider_error' });
      expect(error.text).toBe('t0 t1 t2 ');
    },
  ],
];

/** The client waits as long as the vendor asked, then has its answer. */
export const waitsAndRepeats: Scenario = async (stage) => {
  stage.vendor.script(failure(429, { 'retry-after': shortRetryAfter }));
  stage.says({ text: ['At last.'] });
  expect(await seen(stage, 'chat', { retry: true })).toMatchObject({ text: 'At last.' });
  const [first, second] = stage.vendor.ledger;
  expect(stage.vendor.ledger).toHaveLength(2);
  const waitedMs = (second?.receivedAtMs ?? 0) - (first?.receivedAtMs ?? 0);
  expect(waitedMs).toBeGreaterThanOrEqual(shortRetryAfterMs - 100);
};

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { hang, tokensThen } from '../harness/vendors/vendor-plans.ts';
import { patience, question, rejection, streamed, textOf } from './asking.ts';
import type { RunningProxy } from './proxy.ts';
import type { Rig, StartProxyBefore } from './rig.ts';
import { startRig } from './rig.ts';

/** The two proxies that are compared. */
export interface Ways {
  /** What the chart renders with these tables in its values. */
  start(ports: readonly number[], tables: Readonly<Record<string, unknown>>): Promise<RunningProxy>;
  /** The same with a limit of one second. */
  readonly startImpatient: StartProxyBefore;
}

/** Short, so that a silent vendor is given up by the gateway soon, and by the proxy half a minute later. */
const shortLimits = { attempt_seconds: 1, stream_idle_seconds: 1, request_seconds: 3 };

/** The limits of gateway and proxy are in the right order: the gateway gives up first, and its error is seen. */
export function gatewayGivesUpFirst(ways: Ways): void {
  describe('a silent vendor', () => {
    let rig: Rig;

    beforeAll(async () => {
      const changes = { timeouts: shortLimits };
      rig = await startRig((ports) => ways.start(ports, changes), changes);
    });
    afterAll(async () => {
      await rig?.stop();
    });
    beforeEach(() => rig.gateway.vendors.clear());

    test('before the first token ends in our own error', async () => {
      rig.gateway.vendors.always(hang);
      const error = await rejection(rig.openai.chat.completions.create(streamed, patience()));
      expect(error).toMatchObject({ status: 502, type: 'provider_error' });
    });

    test('in the middle of a stream ends in our own error event', async () => {
      rig.gateway.vendors.openai.script(tokensThen(2, 'hang'));
      const stream = await rig.openai.chat.completions.create(streamed, patience());
      const error = await rejection(textOf(stream));
      expect(error).toMatchObject({ type: 'provider_error' });
    });

    test('is cut by the proxy, without a word of ours, where its limit is below the gateway’s', async () => {
      const patient = await startRig(ways.startImpatient);
      try {
        patient.gateway.vendors.openai.script(tokensThen(2, 'hang'));
        const stream = await patient.openai.chat.completions.create(streamed, patience());
        const error = await rejection(textOf(stream));
        expect(error).not.toMatchObject({ type: 'provider_error' });
        patient.gateway.vendors.openai.script(hang);
        const early = await rejection(patient.openai.chat.completions.create(question, patience()));
        expect(early).toMatchObject({ status: 504 });
        expect(early.type ?? null).toBeNull();
      } finally {
        await patient.stop();
      }
    });
  });
}

import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { logRowsOnceThere } from '../harness/gateway/chat.ts';
import type { User } from '../harness/gateway/register.ts';
import { registerWithKeys } from '../harness/gateway/register.ts';
import { hang, tokensThen } from '../harness/vendors/vendor-plans.ts';
import { patience, question, rejection, streamed, wordOf } from './asking.ts';
import type { Rig, StartProxyBefore } from './rig.ts';
import { clientOf, startRig } from './rig.ts';

/** The vendor's call ended early, and the user's only row says why. */
export async function expectLeft(rig: Rig, user: User): Promise<void> {
  const [call] = rig.gateway.vendors.openai.ledger;
  expect(await call?.closedEarly).toBe(true);
  const [row] = await logRowsOnceThere(user.client, 1);
  expect(row).toMatchObject({ status: 'client_closed' });
}

/** A proxy that tells the gateway at once that a client has left, though no vendor speaks. */
export function tellsWhenTheClientLeaves(startProxy: StartProxyBefore): void {
  let rig: Rig;
  let user: User;

  beforeAll(async () => {
    rig = await startRig(startProxy);
  });
  afterAll(async () => {
    await rig?.stop();
  });
  beforeEach(async () => {
    rig.gateway.vendors.clear();
    user = await registerWithKeys(rig.gateway.url);
  });

  test('a client that leaves a stream ends the vendor call, and the log says so', async () => {
    rig.gateway.vendors.openai.script(tokensThen(2, 'hang'));
    const openai = clientOf(rig.proxy, user.key);
    for await (const chunk of await openai.chat.completions.create(streamed, patience()))
      if (wordOf(chunk) !== '') break;
    await expectLeft(rig, user);
  });

  test('so does one that leaves before an answer', async () => {
    rig.gateway.vendors.openai.script(hang);
    const left = new AbortController();
    const openai = clientOf(rig.proxy, user.key);
    const answer = rejection(openai.chat.completions.create(question, { signal: left.signal }));
    await rig.gateway.vendors.openai.received(0);
    left.abort();
    await answer;
    await expectLeft(rig, user);
  });
}

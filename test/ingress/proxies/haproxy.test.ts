import { afterAll, beforeAll, describe, test } from 'vitest';
import { registerWithKeys } from '../../harness/gateway/register.ts';
import { openAiChunk, sse } from '../../harness/vendors/openai-wire.ts';
import { streamOf } from '../../harness/vendors/vendor-plans.ts';
import type { Script, Step } from '../../harness/vendors/vendor-reply.ts';
import { patience, streamed, wordOf } from '../asking.ts';
import type { ControllerName } from '../haproxy.ts';
import { controllers, startHaproxy } from '../haproxy.ts';
import { expectLeft, tellsWhenTheClientLeaves } from '../leaving.ts';
import { gatewayGivesUpFirst } from '../limits.ts';
import { presetAnnotations } from '../preset.ts';
import type { Rig } from '../rig.ts';
import { clientOf, startRig } from '../rig.ts';
import { servesTheOfficialClient } from '../serving.ts';

/** The official client through HAProxy, as its two controllers configure it for what `ingress.preset: haproxy` renders. */
describe.each(Object.keys(controllers) as ControllerName[])('HAProxy, controller of %s', (name) => {
  const start = async (ports: readonly number[], tables = {}) =>
    startHaproxy(name, await presetAnnotations('haproxy', { tables }), ports);
  const startImpatient = async (ports: readonly number[]) => {
    const annotations = { [`${controllers[name].prefix}timeout-server`]: '1s' };
    return startHaproxy(name, await presetAnnotations('haproxy', { annotations }), ports);
  };
  servesTheOfficialClient((ports) => start(ports));
  gatewayGivesUpFirst({ start, startImpatient });
});

const annotations = await presetAnnotations('haproxy');

describe('HAProxy with abortonclose among its defaults', () => {
  tellsWhenTheClientLeaves((ports) => startHaproxy('community', annotations, ports, ['option abortonclose']));
});

describe('HAProxy without abortonclose', () => {
  let rig: Rig;

  beforeAll(async () => {
    rig = await startRig((ports) => startHaproxy('community', annotations, ports));
  });
  afterAll(async () => {
    await rig?.stop();
  });

  test('tells that the client has left when the vendor speaks on', async () => {
    rig.gateway.vendors.openai.script(endless);
    const user = await registerWithKeys(rig.gateway.url);
    const openai = clientOf(rig.proxy, user.key);
    for await (const chunk of await openai.chat.completions.create(streamed, patience()))
      if (wordOf(chunk) !== '') break;
    await expectLeft(rig, user);
  });
});

/** A vendor at a good pace that comes to no end. */
const endless: Script = (request) => {
  function* words(): Generator<Step> {
    for (;;) yield* [sse(openAiChunk(String(request.body['model']), { content: 'on ' })), { waitMs: 5 }];
  }
  return { ...streamOf([])(request), body: words() };
};

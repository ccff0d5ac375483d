import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { failure, streamEvents, streamOf } from '../harness/vendors/vendor-plans.ts';
import type { Gate, Script } from '../harness/vendors/vendor-reply.ts';
import { gate } from '../harness/vendors/vendor-reply.ts';
import { requestIdPattern } from '../harness/vendors/wire-types.ts';
import { patience, question, rejection, streamed, wordOf } from './asking.ts';
import { startDyingPods } from './dying-pods.ts';
import { bodyLimitBytes } from './preset.ts';
import type { Rig, StartProxyBefore } from './rig.ts';
import { clientOf, startRig } from './rig.ts';

const words = Array.from({ length: 20 }, (_, index) => `word${index} `);
/** Half of what HAProxy keeps an event for, to see whether more comes, where it is not told otherwise. */
const PROMPT_MS = 100;

/** Sends each word only when the gate behind the word before it was opened. */
function wordByWord(gates: readonly Gate[]): Script {
  return (request) => {
    const steps = streamEvents(request, { text: words }).flatMap((event) => {
      const index = words.findIndex((word) => event.includes(`"content":"${word}"`));
      const behind = gates[index];
      return behind === undefined ? [event] : [event, behind];
    });
    return streamOf(steps)(request);
  };
}

/** A question whose JSON has so many bytes. */
function questionOf(bytes: number) {
  const rest = JSON.stringify({ ...question, messages: [{ role: 'user', content: '' }] }).length;
  return { ...question, messages: [{ role: 'user' as const, content: 'x'.repeat(bytes - rest) }] };
}

/** What the official client relies on, whatever stands between it and the gateway. */
export function servesTheOfficialClient(startProxy: StartProxyBefore): void {
  let rig: Rig;

  beforeAll(async () => {
    rig = await startRig(startProxy);
  });
  afterAll(async () => {
    await rig?.stop();
  });
  beforeEach(() => rig.gateway.vendors.clear());

  test('a stream arrives event by event: the vendor sends the next when the client has the last', async () => {
    const gates = words.map(() => gate());
    rig.gateway.vendors.openai.script(wordByWord(gates));
    const stream = await rig.openai.chat.completions.create(streamed, patience());
    const seen: string[] = [];
    const gapsMs: number[] = [];
    let lastAtMs = performance.now();
    for await (const chunk of stream) {
      const word = wordOf(chunk);
      if (word === '') continue;
      gapsMs.push(performance.now() - lastAtMs);
      lastAtMs = performance.now();
      gates[seen.length]?.open();
      seen.push(word);
    }
    expect(seen).toEqual(words);
    // What is held, is held each time; a machine that is busy is not busy each time.
    expect(Math.min(...gapsMs.slice(1))).toBeLessThan(PROMPT_MS);
  });

  test('an answer arrives whole, with a request id', async () => {
    const { data, request_id: id } = await rig.openai.chat.completions.create(question).withResponse();
    expect(data.choices[0]?.message.content).toBe('Namaste, world.');
    expect(data).toMatchObject({ gateway: { provider: 'openai' } });
    expect(id).toMatch(requestIdPattern);
  });

  test.each<[name: string, wanted: object, vendors: Script | null, changes: object, key?: string]>([
    ['401', { status: 401, type: 'authentication_error' }, null, {}, 'gw_wrong'],
    ['422', { status: 422, type: 'invalid_request_error', param: 'temperature' }, null, { temperature: 9 }],
    ['429', { status: 429, type: 'rate_limit_error' }, failure(429, { 'retry-after': '7' }), {}],
    ['502', { status: 502, type: 'provider_error' }, failure(500), {}],
  ])('%s arrives as our own error', async (_name, wanted, vendors, changes, key = rig.user.key) => {
    if (vendors !== null) rig.gateway.vendors.always(vendors);
    const client = clientOf(rig.proxy, key);
    const error = await rejection(client.chat.completions.create({ ...question, ...changes }));
    expect(error).toMatchObject(wanted);
    expect(error.headers?.get('retry-after') ?? null).toBe(error.status === 429 ? '7' : null);
    expect(error.requestID).toMatch(requestIdPattern);
    expect(error.error).toMatchObject({ request_id: error.requestID });
  });

  test('the largest allowed body passes', async () => {
    const body = questionOf(bodyLimitBytes);
    const answer = await rig.openai.chat.completions.create(body);
    expect(answer.choices[0]?.message.content).toBe('Namaste, world.');
    const [call] = rig.gateway.vendors.openai.ledger;
    expect(call?.bodyText.length).toBeGreaterThan(bodyLimitBytes - 1000);
  });

  test.each([1, bodyLimitBytes])('a body of %i bytes too many is refused by our own error', async (more) => {
    const error = await rejection(rig.openai.chat.completions.create(questionOf(bodyLimitBytes + more)));
    expect(error).toMatchObject({ status: 413, code: 'body_too_large' });
  });

  test('a request whose pod dies is not repeated at another', async () => {
    const pods = await startDyingPods(2);
    const proxy = await startProxy(pods.ports);
    try {
      const error = await rejection(clientOf(proxy).chat.completions.create(question));
      expect(error.status).toBeGreaterThanOrEqual(502);
      expect(pods.requests()).toBe(1);
    } finally {
      await proxy.stop();
      pods.close();
    }
  });
}

/** Vendors that quote the key where it is hard to find: in words that the prompt quotes too, and without its blanks. */
import { expect, test } from 'vitest';
import { chat } from '../harness/gateway/chat.ts';
import { addKey } from '../harness/gateway/register.ts';
import { useGateway, useUser } from '../harness/gateway/use-gateway.ts';
import { eventually } from '../harness/measure/eventually.ts';
import { respond } from '../harness/vendors/vendor-plans.ts';
import type { Script } from '../harness/vendors/vendor-reply.ts';
import type { LogPage } from '../harness/vendors/wire-types.ts';

const gateway = useGateway({});
const [quoter, paster] = [useUser(gateway, []), useUser(gateway, [])];

/** Refuses in this sentence, with the key as it came. */
const quoting =
  (sentence: string): Script =>
  (request) => {
    const key = String(request.headers['authorization']).slice('Bearer '.length);
    const error = { message: sentence.replace('KEY', () => key), type: 'auth' };
    return respond(401, JSON.stringify({ error }), { 'content-type': 'application/json' })(request);
  };

const prefixed = 'sk-proj-7hQ2vLx9RbTn4KdW1yZc8UeM';
const plain = '9f86d081884c7d659a2feaa0c55ad015';

test.each([
  [
    'in a sentence that the prompt quotes up to it',
    quoter,
    prefixed,
    prefixed,
    'Incorrect API key provided: KEY.',
  ],
  ['that was registered with blanks around it', paster, plain, ` ${plain} `, 'Bad key "KEY"'],
])('a key %s is in no answer and no row', async (_where, user, secret, registered, sentence) => {
  await addKey(user, { provider: 'openai', api_key: registered });
  gateway.vendors.always(quoting(sentence));
  const content = 'What is this? Incorrect API key provided: sk-proj-oldoldold.';
  const asked = { model: 'gw/balanced', messages: [{ role: 'user', content }] };
  const tier = await chat(user.client, asked);
  const override = await chat(user.client, asked, { 'x-gateway-override-model': 'openai:gpt-test' });
  expect([tier.text, override.text]).toEqual([
    expect.stringContaining('key-rejected'),
    expect.stringContaining('ey'),
  ]);
  const listed = await eventually(async () => {
    const page = await user.client.get('/v1/logs');
    return page.json<LogPage>().data.length > 1 ? page : undefined;
  });
  const rows = await Promise.all(
    listed.json<LogPage>().data.map(({ id }) => user.client.get(`/v1/logs/${id}`)),
  );
  const tail = secret.slice(8);
  expect([tier, override, listed, ...rows].filter(({ text }) => text.includes(tail))).toEqual([]);
});

import { randomUUID } from 'node:crypto';
import type { User } from '../gateway/register.ts';
import { addKey, registerWithKeys } from '../gateway/register.ts';
import type { Completion, KeyRecord } from '../vendors/wire-types.ts';
import type { Asking } from './asking.ts';
import { afterRevoked, whileKeysChange, whileRevoked } from './requests.ts';
import type { SoakWorld } from './world.ts';

/** Answers that a new service key gets before it is revoked. */
const answersBeforeRevoked = 5;
/** Requests that must be refused afterwards. */
const refusals = 3;

/** Changes all keys of a user once, while that user's requests run. */
export type ChangeKeys = () => Promise<void>;

/**
 * A user whose keys change, of those that the load does not use: its account is read from Postgres after each change, so
 * it is not asked for while Postgres is away. What is not as it should be is told to `asking.wrong`.
 */
export async function keyChanges(world: SoakWorld, asking: Asking): Promise<ChangeKeys> {
  const user = await registerWithKeys(world.gateway.url, ['openai', 'together']);
  return async () => {
    const stop = asking.keepAsking(whileKeysChange, user.key);
    try {
      await changeProviderKey(world, asking, user);
      await changeServiceKey(asking, user);
    } finally {
      await stop();
    }
  };
}

/** Deletes the key of the first candidate, which leaves the second, and registers another secret in its place. */
async function changeProviderKey({ gateway }: SoakWorld, asking: Asking, user: User): Promise<void> {
  const listed = (await user.client.get('/v1/keys')).json<KeyRecord[]>();
  const held = listed.find(({ provider }) => provider === 'openai');
  const deleted = await user.client.delete(`/v1/keys/${held?.id}`);
  if (deleted.status !== 204)
    asking.wrong(`deleting a provider key answered ${deleted.status} ${deleted.text}`);
  await expectProvider(asking, user, 'together');
  const secret = `sk-openai-${randomUUID()}`;
  await addKey(user, { provider: 'openai', api_key: secret });
  const id = await expectProvider(asking, user, 'openai');
  const received = gateway.vendors.openai.ledger.findLast(({ bodyText }) => bodyText.includes(id));
  if (received?.headers['authorization'] !== `Bearer ${secret}`)
    asking.wrong('a vendor was called with a provider key that had been replaced');
}

/** Asks once; the request's id. */
async function expectProvider(asking: Asking, user: User, provider: string): Promise<string> {
  const { id, status, text } = await asking.ask(whileKeysChange, user.key);
  const made = status === 200 ? (JSON.parse(text) as Completion).gateway.provider : `nobody (${status})`;
  if (made !== provider) asking.wrong(`${made} answered where only ${provider} was right`);
  return id;
}

/** Makes a service key, uses it, and revokes it while it is used. */
async function changeServiceKey(asking: Asking, user: User): Promise<void> {
  const made = await user.client.post('/v1/service-keys', { label: 'soak' });
  if (made.status !== 201) return asking.wrong(`making a service key answered ${made.status} ${made.text}`);
  const { id, api_key: key } = made.json<{ id: string; api_key: string }>();
  for (let count = 0; count < answersBeforeRevoked; count += 1) await asking.ask(whileKeysChange, key);
  const stop = asking.keepAsking(whileRevoked, key);
  try {
    const revoked = await user.client.delete(`/v1/service-keys/${id}`);
    if (revoked.status !== 204)
      asking.wrong(`revoking a service key answered ${revoked.status} ${revoked.text}`);
    for (let count = 0; count < refusals; count += 1) await asking.ask(afterRevoked, key);
  } finally {
    await stop();
  }
}

import { randomBytes } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { expect, onTestFinished, test } from 'vitest';
import type { Accounts, Caller } from '../../../src/chat/ports.ts';
import type { HeldKey } from '../../../src/core/candidate.ts';
import { freshAccount, keysOf } from '../../../src/http/access/keys-of.ts';
import { eventually } from '../../harness/measure/eventually.ts';
import { livingBytes } from '../../harness/measure/memory.ts';
import { callerOf } from '../caller.ts';
import { head, startEdge } from '../edge.ts';

const serviceKey = `gw_${randomBytes(32).toString('hex')}`;
const waiting = 200;

const found: WeakRef<object>[] = [];

/** As after each change of a key: a copy of its own for whoever asks. */
const accounts: Accounts = {
  find: () => {
    const key = { id: 'k' } as HeldKey;
    found.push(new WeakRef(key));
    return callerOf('u', [key]);
  },
  remembers: () => true,
  isRevoked: () => false,
  refresh: async () => null,
};

/** A tenant's keys are in memory once, however many requests of theirs wait for the rest of their bodies. */
test('a request that waits for its body carries none, and finds them when it has it', async () => {
  const edge = await startEdge(
    (scope) =>
      scope.post('/keys', async (request) => ({
        keys: (await keysOf(request, accounts)).map(({ id }) => id),
      })),
    {},
    accounts,
  );
  onTestFinished(() => edge.close());
  const fields = { authorization: `Bearer ${serviceKey}`, 'content-length': 2 };
  const clients = Array.from({ length: waiting }, () => edge.connect(head(fields, 'POST /keys'), '{').read());
  await eventually(async () => found.length === waiting || undefined);
  await eventually(async () => {
    livingBytes();
    return found.every((key) => key.deref() === undefined) || undefined;
  });
  for (const { socket } of clients) socket.write('}');
  await eventually(async () => clients.every(({ text }) => text.endsWith('}')) || undefined);
  expect(clients.filter(({ text }) => !text.endsWith('{"keys":["k"]}'))).toEqual([]);
});

test.each<[what: string, fresh: Caller | null, isTaken: boolean]>([
  ['as the request knew it, with a key more', callerOf('u', [{ id: 'k' } as HeldKey]), true],
  ['gone', null, false],
  ['disabled', { ...callerOf('u', []), disabled: true }, false],
  ['bound to India', { ...callerOf('u', []), residency: 'india' }, false],
])('an account that is %s when it is read again', async (_what, fresh, isTaken) => {
  const request = { account: callerOf('u', []), serviceKeyHash: 'h' } as unknown as FastifyRequest;
  expect(await freshAccount(request, async () => fresh)).toBe(isTaken ? fresh : null);
});

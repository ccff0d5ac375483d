/** What a command answers whether it is sent or not, and when Redis is asked no more. */
import { EventEmitter } from 'node:events';
import { ReplyError } from 'ioredis';
import { expect, test } from 'vitest';
import type { RedisConnection } from '../../../src/adapters/redis/connection.ts';
import type { GuardedCommand } from '../../../src/adapters/redis/guarded-connection.ts';
import { GuardedConnection } from '../../../src/adapters/redis/guarded-connection.ts';

class ScriptedConnection extends EventEmitter {
  status = 'ready';
}

type Reply = () => Promise<number>;

const says: Reply = async () => 7;
const refuses: Reply = async () => {
  throw new ReplyError('OOM command not allowed');
};
const isSilent: Reply = async () => {
  throw new Error('Command timed out');
};

const command: GuardedCommand<Reply, number, string> = {
  send: (reply) => reply(),
  read: (number) => `said ${number}`,
  unsent: 'unsent',
  failed: (error) => `failed: ${(error as Error).message}`,
};

function start() {
  const redis = new ScriptedConnection();
  const clock = { nowMs: 0 };
  const guarded = new GuardedConnection(redis as unknown as RedisConnection, () => clock.nowMs);
  const ask = (reply: Reply): Promise<string> => guarded.run(command, reply);
  return { redis, clock, guarded, ask };
}

test.each<[string, string, Reply, string]>([
  ['is there and answers', 'ready', says, 'said 7'],
  ['refuses', 'ready', refuses, 'failed: OOM command not allowed'],
  ['is silent', 'ready', isSilent, 'failed: Command timed out'],
  ['is away', 'reconnecting', says, 'unsent'],
])('of a server that %s', async (_, status, reply, answer) => {
  const { redis, guarded, ask } = start();
  redis.status = status;
  expect(guarded.mayAsk()).toBe(status === 'ready');
  expect(await ask(reply)).toBe(answer);
});

test('a server that refuses is asked again each time', async () => {
  const { ask } = start();
  for (let at = 0; at < 10; at += 1) expect(await ask(refuses)).toMatch(/^failed/);
});

test('after five commands without an answer nothing is sent for a second, then one at a time', async () => {
  const { clock, guarded, ask } = start();
  for (let at = 0; at < 5; at += 1) expect(await ask(isSilent)).toMatch(/^failed/);
  expect(await ask(says)).toBe('unsent');
  expect(guarded.mayAsk()).toBe(false);
  clock.nowMs = 1000;
  expect(guarded.mayAsk()).toBe(true);
  expect(await Promise.all([ask(says), ask(says)])).toEqual(['said 7', 'unsent']);
  expect(await ask(says)).toBe('said 7');
});

test('a connection that is made anew is asked at once', async () => {
  const { redis, ask } = start();
  for (let at = 0; at < 5; at += 1) await ask(isSilent);
  redis.emit('ready');
  expect(await ask(says)).toBe('said 7');
});

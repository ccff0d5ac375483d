/** All that redis.test.ts asks of Redis, asked of Valkey. */
import { test } from 'vitest';

const program = process.env['TEST_VALKEY_SERVER'];
if (program === undefined) test.skip('there is no Valkey on this machine', () => undefined);
else {
  process.env['TEST_REDIS_SERVER'] = program;
  await import('./redis.test.ts');
}

/** A stored key that none of the sealing keys opens: its owner has to store it anew, and nothing else waits for that. */
import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { registerWithKeys } from '../harness/gateway/register.ts';
import { useGateway } from '../harness/gateway/use-gateway.ts';
import { runCommand } from './run-command.ts';

const gateway = useGateway();

test.each([
  ['fails the command', [], 1],
  ['fails nothing where such may be left, as the Job of an upgrade does', ['--leave-unopened'], 0],
])('is named, and %s', async (_name, more, code) => {
  const { client } = await registerWithKeys(gateway.url, ['openai']);
  const [key] = (await client.get('/v1/keys')).json<{ id: string }[]>();
  const ended = await runCommand(['reseal', ...more], {
    DATABASE_URL: gateway.database.url,
    GW_SEALING_KEYS: `other:${randomBytes(32).toString('base64')}`,
  });
  expect(ended).toMatchObject({ code, stdout: '0 keys moved to the newest sealing key and seal\n' });
  expect(ended.stderr).toContain('keys that none of the sealing keys given opens:');
  expect(ended.stderr).toContain(`\n  ${key?.id}`);
});

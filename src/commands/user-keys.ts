import type { Command } from 'commander';
import { storedId } from '../core/account/stored-id.ts';
import type { JsonOption } from './command.ts';
import { CommandError } from './exit-codes.ts';
import { addUserCommand, noUser, withUser } from './named-user.ts';
import { print, printJson } from './output.ts';
import { instantArgument } from './period.ts';

interface NewKeyOptions extends JsonOption {
  readonly label?: string;
  readonly expires?: bigint;
}

async function newKey(idOrEmail: string, { label, expires, json }: NewKeyOptions): Promise<void> {
  const { addServiceKey } = await import('../adapters/postgres/service-keys.ts');
  const { newServiceKeySchema } = await import('../core/account/account-requests.ts');
  const { newUserKey } = await import('../http/admin/operator-records.ts');
  const checked = newServiceKeySchema.safeParse({ label });
  if (!checked.success) throw new CommandError('usage', `--label ${checked.error.issues[0]?.message}`);
  if (expires !== undefined && expires <= BigInt(Date.now()) * 1000n)
    throw new CommandError('usage', '--expires lies in the past');
  await withUser(idOrEmail, async (pool, { id }) => {
    const added = await addServiceKey(
      pool,
      id,
      { label: label ?? null, expiresAtMicros: expires ?? null },
      null,
    );
    if (added.kind === 'not-asked') throw noUser(idOrEmail);
    if (added.kind === 'too-many')
      throw new CommandError('failed', `the user has ${added.most} service keys already`);
    if (json) printJson(newUserKey(id, added.row, added.apiKey));
    else print(`${added.apiKey}\n`);
  });
}

async function revokeKey(idOrEmail: string, named: string, { json }: JsonOption): Promise<void> {
  const { revokeServiceKey } = await import('../adapters/postgres/service-keys.ts');
  const keyId = storedId(named);
  await withUser(idOrEmail, async (pool, { id }) => {
    if (!(await revokeServiceKey(pool, id, keyId)))
      throw new CommandError('notFound', `the user has no service key ${named}`);
    if (json) printJson({ user_id: id, id: keyId, revoked: true });
    else print(`${keyId} is revoked\n`);
  });
}

/** `users new-key` and `users revoke-key`: a user's service keys. */
export function addUserKeys(users: Command): void {
  addUserCommand(users, {
    name: 'new-key',
    summary: 'make another service key of a user, and print it',
    example: 'model-gateway users new-key ada@example.com --label recovery --expires 2027-01-01',
  })
    .option('--label <text>', 'what it is for')
    .option('--expires <time>', 'a date (UTC), or a time with its zone', instantArgument)
    .action(newKey);
  addUserCommand(users, {
    name: 'revoke-key',
    summary: 'revoke one service key of a user, the last one too',
    details: '"users show" has the ids. Answers under way come to their end.',
    example: 'model-gateway users revoke-key ada@example.com 0f0c1b5e-6c1f-4a53-9d55-2f3a1c9b7e10',
  })
    .argument('<key-id>', 'id of the service key')
    .action(revokeKey);
}

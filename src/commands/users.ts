import type { Command } from 'commander';
import { Argument } from 'commander';
import type { UserFacts, UserPolicy } from '../adapters/postgres/operators.ts';
import type { UserRecord } from '../http/admin/operator-schemas.ts';
import type { JsonOption } from './command.ts';
import { addCommand, jsonOption } from './command.ts';
import { CommandError } from './exit-codes.ts';
import { addUserCommand, noUser, withUser } from './named-user.ts';
import { allRead, print, printJson, shownText, textTable } from './output.ts';
import { addUserKeys } from './user-keys.ts';
import { addUserLimits, limitsText } from './user-limits.ts';
import { withPool } from './with-pool.ts';

/** Read and printed at once, whatever their number. */
const usersPerPage = 500;

/** Imported when a command runs. */
const operators = () => import('../adapters/postgres/operators.ts');
const records = () => import('../http/admin/operator-records.ts');

function line({
  user_id,
  created_at,
  disabled_at,
  residency,
  service_keys,
  provider_keys,
  email,
}: UserRecord): string {
  const state = disabled_at === null ? 'enabled' : 'disabled';
  const counts = `${String(service_keys).padStart(3)}${String(provider_keys).padStart(4)}`;
  return `${user_id}  ${created_at.slice(0, 10)}  ${state.padEnd(8)}  ${(residency ?? '-').padEnd(5)} ${counts}  ${shownText(email)}\n`;
}

const heading = `${'user'.padEnd(36)}  ${'since'.padEnd(10)}  ${'state'.padEnd(8)}  bound  keys  e-mail\n`;

async function list({ json }: JsonOption): Promise<void> {
  const [{ listUsers }, { userRecord }] = await Promise.all([operators(), records()]);
  await withPool(async (pool) => {
    for (let after: string | null = null, isLast = false; !isLast; ) {
      const page: UserFacts[] = await listUsers(pool, after, usersPerPage);
      if (!json && after === null) print(heading);
      for (const record of page.map(userRecord)) json ? printJson(record) : print(line(record));
      await allRead();
      isLast = page.length < usersPerPage;
      after = page.at(-1)?.id ?? null;
    }
  });
}

async function add(email: string, { json }: JsonOption): Promise<void> {
  const { registerUser } = await import('../adapters/postgres/users.ts');
  const { registerUserSchema } = await import('../core/account/account-requests.ts');
  const checked = registerUserSchema.safeParse({ email });
  if (!checked.success) throw new CommandError('usage', `the e-mail ${checked.error.issues[0]?.message}`);
  const user = await withPool((pool) => registerUser(pool, checked.data));
  if (user === null) throw new CommandError('failed', 'this e-mail address is already registered');
  const { registeredUser } = await records();
  if (json) printJson(registeredUser(user));
  else print(`${user.apiKey}\n`);
}

async function show(idOrEmail: string, { json }: JsonOption): Promise<void> {
  const { listServiceKeys } = await import('../adapters/postgres/service-keys.ts');
  const { listProviderKeys } = await import('../adapters/postgres/provider-keys.ts');
  const { shownUser } = await records();
  await withUser(idOrEmail, async (pool, found) => {
    const serviceKeys = await listServiceKeys(pool, found.id);
    const shown = shownUser(found, serviceKeys, await listProviderKeys(pool, found.id));
    if (json) return printJson(shown);
    const { user, service_keys, provider_keys } = shown;
    print(`${heading}${line(user)}limits: ${limitsText(user.limits)}\n`);
    print(keyTable('service key', service_keys) + keyTable('provider key', provider_keys));
  });
}

/** The ids under what they are of, the other columns under their names in JSON. */
function keyTable(name: string, keys: readonly object[]): string {
  const [, ...others] = Object.keys(keys[0] ?? {});
  const rows = keys.map((key) => Object.values(key).map((value) => String(value ?? '-')));
  return textTable([name, ...others], rows);
}

/** A command that decides one thing for a user. */
async function decide(idOrEmail: string, policy: UserPolicy, { json }: JsonOption): Promise<void> {
  const [{ setUserPolicy }, { userRecord }] = await Promise.all([operators(), records()]);
  await withUser(idOrEmail, async (pool, { id }) => {
    const user = await setUserPolicy(pool, id, policy);
    if (user === null) throw noUser(idOrEmail);
    if (json) return printJson(userRecord(user));
    print(heading + line(userRecord(user)));
    if (policy.limits !== undefined) print(`limits: ${limitsText(user.limits)}\n`);
  });
}

async function erase(idOrEmail: string, { json }: JsonOption): Promise<void> {
  const { deleteUser } = await operators();
  await withUser(idOrEmail, async (pool, { id }) => {
    if (!(await deleteUser(pool, id))) throw noUser(idOrEmail);
    json ? printJson({ user_id: id, deleted: true }) : print(`${id} is deleted\n`);
  });
}

export function addUsers(program: Command): void {
  const users = addCommand(program, {
    name: 'users',
    summary: 'list users, and decide for them',
    details: 'On the database of the settings; gateways heed a decision within a second.',
    example: 'model-gateway users list',
  });
  addCommand(users, {
    name: 'list',
    summary: 'list all users',
    details: 'As JSON one object per line.',
    example: 'model-gateway users list --json | jq -r .email',
  })
    .option(...jsonOption)
    .action(list);
  addCommand(users, {
    name: 'add',
    summary: 'register a user, also where registration is closed, and print the service key',
    example: 'model-gateway users add ada@example.com',
  })
    .argument('<email>', 'e-mail address')
    .option(...jsonOption)
    .action(add);
  addUserCommand(users, {
    name: 'show',
    summary: 'show a user with its keys, none of them in the clear',
    example: 'model-gateway users show ada@example.com',
  }).action(show);
  addUserCommand(users, {
    name: 'disable',
    summary: 'refuse all requests of a user from now on',
    details: 'Answers under way come to their end; nothing is erased.',
    example: 'model-gateway users disable ada@example.com',
  }).action((user: string, options: JsonOption) => decide(user, { disabled: true }, options));
  addUserCommand(users, {
    name: 'enable',
    summary: 'let a disabled user in again',
    example: 'model-gateway users enable ada@example.com',
  }).action((user: string, options: JsonOption) => decide(user, { disabled: false }, options));
  addUserCommand(users, {
    name: 'set-residency',
    summary: 'bind a user to India, or to nothing',
    details: 'A request may ask for more, never for less.',
    example: 'model-gateway users set-residency ada@example.com india',
  })
    .addArgument(new Argument('<residency>').choices(['india', 'none']))
    .action((user: string, residency: 'india' | 'none', options: JsonOption) =>
      decide(user, { residency: residency === 'india' ? 'india' : null }, options),
    );
  addUserLimits(users, decide);
  addUserCommand(users, {
    name: 'delete',
    summary: 'erase a user with its e-mail address and all its keys',
    details: 'Sums and log rows stay, under an id that leads to nobody.',
    example: 'model-gateway users delete ada@example.com',
  }).action(erase);
  addUserKeys(users);
}

import type { Command } from 'commander';
import type pg from 'pg';
import type { UserFacts } from '../adapters/postgres/operators.ts';
import type { CommandText } from './command.ts';
import { addCommand, jsonOption } from './command.ts';
import { CommandError } from './exit-codes.ts';
import { withPool } from './with-pool.ts';

/** A command about one user, whom the operator names by id or e-mail address. */
export function addUserCommand(users: Command, text: CommandText): Command {
  return addCommand(users, text)
    .argument('<user>', 'id or e-mail address')
    .option(...jsonOption);
}

export const noUser = (idOrEmail: string): CommandError =>
  new CommandError('notFound', `there is no user ${idOrEmail}`);

/** Calls `act` with the user that the operator named. Throws CommandError where there is none. */
export function withUser<Result>(
  idOrEmail: string,
  act: (pool: pg.Pool, user: UserFacts) => Promise<Result>,
): Promise<Result> {
  return withPool(async (pool) => {
    const { findUser } = await import('../adapters/postgres/operators.ts');
    const user = await findUser(pool, idOrEmail);
    if (user === null) throw noUser(idOrEmail);
    return act(pool, user);
  });
}

import type { Command } from 'commander';
import { InvalidArgumentError } from 'commander';
import type { LimitName } from '../core/limits/limit-table.ts';
import { limitNames } from '../core/limits/limit-table.ts';
import type { LimitChanges, UserLimits } from '../core/limits/user-limits.ts';
import { countedText, dollarsText, isMoney, limitChangesSchema } from '../core/limits/user-limits.ts';
import type { JsonOption } from './command.ts';
import { CommandError } from './exit-codes.ts';
import { addUserCommand } from './named-user.ts';

/** What the option of each limit says; the name of the option follows from that of the limit. */
const meanings: Readonly<Record<LimitName, string>> = {
  requests_per_minute: 'chat requests in a minute, over all replicas',
  tokens_per_minute: 'tokens of answers in a minute, input and output',
  streams: 'streams under way at once',
  budget_usd_per_day: 'dollars in a day (UTC)',
  budget_usd_per_month: 'dollars in a calendar month (UTC)',
};

const optionOf = (name: LimitName): string => `--${name.replaceAll('_', '-')}`;

/** Reads one limit. `none` stays a text: commander takes null for an option without a value. */
function limitArgument(name: LimitName): (text: string) => string | number {
  return (text) => {
    const value = text.trim().toLowerCase();
    if (value === 'none' || value === 'default') return value;
    const given = isMoney(name) || !/^\d+$/.test(value) ? value : Number(value);
    if (limitChangesSchema.shape[name].safeParse(given).success) return given;
    const number = isMoney(name) ? dollarsText : countedText;
    throw new InvalidArgumentError(`It must be ${number}, none or default.`);
  };
}

const camelCase = (name: string): string =>
  name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());

/** The changes among the options of the command. Throws CommandError when there are none. */
function changesOf(options: Readonly<Record<string, unknown>>): LimitChanges {
  const named = limitNames.filter((name) => options[camelCase(name)] !== undefined);
  if (named.length === 0) {
    throw new CommandError('usage', `name a limit: ${limitNames.map(optionOf).join(', ')}`);
  }
  const given = named.map((name) => [name, options[camelCase(name)]] as const);
  return limitChangesSchema.parse(
    Object.fromEntries(given.map(([name, value]) => [name, value === 'none' ? null : value])),
  );
}

/** `streams 2, requests_per_minute none`. */
export function limitsText(limits: UserLimits | null): string {
  if (limits === null) return 'as the tables say';
  const exceptions = Object.entries(limits).map(([name, value]) => `${name} ${value ?? 'none'}`);
  return `${exceptions.join(', ')}; the rest as the tables say`;
}

/** `users limits`; `decide` writes the changes down and shows the user. */
export function addUserLimits(
  users: Command,
  decide: (idOrEmail: string, policy: { limits: LimitChanges }, options: JsonOption) => Promise<void>,
): void {
  const command = addUserCommand(users, {
    name: 'limits',
    summary: 'make a user an exception from the limits of the tables',
    details:
      'Each limit is a number, "none", or "default": as the tables say again. The others stay as they are.',
    example: 'model-gateway users limits ada@example.com --requests-per-minute 600 --streams none',
  });
  for (const name of limitNames) {
    command.option(`${optionOf(name)} <limit>`, meanings[name], limitArgument(name));
  }
  command.action((user: string, options: JsonOption & Readonly<Record<string, unknown>>) =>
    decide(user, { limits: changesOf(options) }, options),
  );
}

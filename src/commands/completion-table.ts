import type { Command, Option } from 'commander';

/** A word that may stand next, and what it does. */
export interface Word {
  readonly text: string;
  readonly about: string;
}

/** What may follow a command, as the command line itself says it. */
export interface CompletedCommand {
  /** `users list`; empty: no command yet. */
  readonly path: string;
  readonly commands: readonly Word[];
  readonly options: readonly Word[];
  /** Options that take a value, and its choices; none: it is the user's own. */
  readonly values: readonly { readonly option: string; readonly choices: readonly string[] }[];
  /** The choices of each argument in its place; none: it is the user's own. */
  readonly args: readonly (readonly string[])[];
}

const longOf = ({ long, short }: Option): string => long ?? short ?? '';

/** Every command below this one and itself, in the order of the help. */
export function completedCommands(command: Command, path = ''): readonly CompletedCommand[] {
  const help = command.createHelp();
  const commands = help.visibleCommands(command);
  const options = help.visibleOptions(command);
  const own: CompletedCommand = {
    path,
    commands: commands.map((one) => ({ text: one.name(), about: one.summary() || one.description() })),
    options: options.map((one) => ({ text: longOf(one), about: one.description })),
    values: options
      .filter(({ required, optional }) => required || optional)
      .map((one) => ({ option: longOf(one), choices: one.argChoices ?? [] })),
    args: command.registeredArguments.map(({ argChoices }) => argChoices ?? []),
  };
  // What `help` explains is what stands beside it.
  const isHelp = (one: Command): boolean => one.name() === 'help';
  const below = commands.flatMap((one): readonly CompletedCommand[] => {
    const at = `${path} ${one.name()}`.trim();
    if (!isHelp(one)) return completedCommands(one, at);
    const named = commands.filter((other) => !isHelp(other)).map((other) => other.name());
    return [{ path: at, commands: [], options: [], values: [], args: [named] }];
  });
  return [own, ...below];
}

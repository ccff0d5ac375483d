import type { Command } from 'commander';
import { InvalidArgumentError } from 'commander';

export interface CommandText {
  readonly name: string;
  /** One line for the list of commands, without a full stop. */
  readonly summary: string;
  /** What else its own help says; the summary stands before it. */
  readonly details?: string;
  /** Command lines that work as they stand. */
  readonly example: string;
}

/**
 * A command below `parent`, whose `--help` ends in the example. Its file imports what it needs when it runs, so that no
 * command pays for another.
 */
export function addCommand(parent: Command, { name, summary, details, example }: CommandText): Command {
  const sentence = `${summary.charAt(0).toUpperCase()}${summary.slice(1)}.`;
  const command = parent.command(name).summary(summary);
  command.description(details === undefined ? sentence : `${sentence} ${details}`);
  return command.addHelpText('after', `\nExample:\n${example.replaceAll(/^/gm, '  ')}`);
}

/** `--json`, for commands that have something to tell machines. */
export const jsonOption = ['--json', 'print JSON, for machines'] as const;

export interface JsonOption {
  readonly json?: true;
}

const forms = { number: /^\d+(?:\.\d+)?$/, 'whole number': /^\d+$/ } as const;

/** Reads an argument that is a number of something, within bounds. */
export function numberWithin(least: number, most: number, form: keyof typeof forms = 'number') {
  return (text: string): number => {
    const value = Number(text);
    if (forms[form].test(text) && value >= least && value <= most) return value;
    throw new InvalidArgumentError(`It must be a ${form} from ${least} to ${most}.`);
  };
}

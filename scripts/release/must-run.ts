import { runQuietly } from '../../test/harness/stage/children.ts';
import { root, StageError } from '../../test/harness/stage/project.ts';

/** A program and its arguments. */
export type Command = readonly [program: string, ...args: string[]];

/** Runs it to its good end; resolves with all that it wrote. Throws StageError with the last of that. */
export async function mustRun(command: Command, env: NodeJS.ProcessEnv = process.env): Promise<string> {
  const [program, ...args] = command;
  const { code, output } = await runQuietly(program, args, { cwd: root, env });
  if (code === 0) return output;
  throw new StageError(`${shownCommand(command)} failed:\n${output.trim()}`);
}

/** As a person would type it in the checkout. */
export function shownCommand([program, ...args]: Command): string {
  const relative = args.map((arg) => arg.replaceAll(`${root}/`, ''));
  const quoted = relative.map((arg) => (/^[\w@%+=:,./<>-]*$/.test(arg) && arg !== '' ? arg : `'${arg}'`));
  return [program.split('/').at(-1), ...quoted].join(' ');
}

import { StageError } from '../../test/harness/stage/project.ts';
import type { Command } from './must-run.ts';
import { shownCommand } from './must-run.ts';

/** The digest that a program named among all that it wrote, warnings included. Throws StageError. */
export function digestIn(output: string, command: Command): string {
  const [digest] = /\bsha256:[0-9a-f]{64}\b/.exec(output) ?? [];
  if (digest === undefined)
    throw new StageError(`${shownCommand(command)} named no digest:\n${output.trim()}`);
  return digest;
}

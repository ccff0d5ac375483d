import type { Command } from 'commander';
import { Argument } from 'commander';
import { addCommand } from './command.ts';
import { print } from './output.ts';

const shells = ['bash', 'zsh'] as const;

async function printScript(program: Command, shell: (typeof shells)[number]): Promise<void> {
  const { completedCommands } = await import('./completion-table.ts');
  const { bashCompletion, zshCompletion } = await import('./completion-scripts.ts');
  const script = { bash: bashCompletion, zsh: zshCompletion }[shell];
  print(script(completedCommands(program)));
}

export function addCompletion(program: Command): void {
  addCommand(program, {
    name: 'completion',
    summary: 'print a script with which the shell completes commands and options',
    example: 'source <(model-gateway completion bash)',
  })
    .addArgument(new Argument('<shell>').choices([...shells]))
    .action((shell: (typeof shells)[number]) => printScript(program, shell));
}

import type { Command } from 'commander';
import { addCommand } from './command.ts';
import { print } from './output.ts';

async function printNewKey(): Promise<void> {
  const { randomBytes } = await import('node:crypto');
  const { newServiceKey } = await import('../core/account/service-key.ts');
  print(`${newServiceKey(randomBytes(32))}\n`);
}

export function addNewKey(program: Command): void {
  addCommand(program, {
    name: 'new-key',
    summary: "print a new service key, for a sidecar's Secret",
    details: 'Nothing is stored.',
    example: 'kubectl create secret generic gateway --from-literal=service-key="$(model-gateway new-key)"',
  }).action(printNewKey);
}

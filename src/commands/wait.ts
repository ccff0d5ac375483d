import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import { addCommand, numberWithin } from './command.ts';

/** Longer than any grace period. */
const mostSeconds = 86_400;

export function addWait(program: Command): void {
  addCommand(program, {
    name: 'wait',
    summary: 'sleep, for preStop hooks without a shell',
    example: 'model-gateway wait 5',
  })
    .argument('<seconds>', 'how long', numberWithin(0, mostSeconds))
    .action(async (seconds: number) => {
      await sleep(seconds * 1000);
    });
}

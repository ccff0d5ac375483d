import type { Command } from 'commander';
import { addCommand } from './command.ts';

async function printDescription(): Promise<void> {
  const { openApiDocument } = await import('../http/openapi.ts');
  process.stdout.write(`${JSON.stringify(openApiDocument(), null, 2)}\n`);
}

export function addOpenApi(program: Command): void {
  addCommand(program, {
    name: 'openapi',
    summary: 'print the OpenAPI description',
    example: 'model-gateway openapi > openapi.json',
  }).action(printDescription);
}

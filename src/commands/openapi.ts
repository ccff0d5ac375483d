import type { Command } from 'commander';
import { addCommand } from './command.ts';
import { print } from './output.ts';

async function printDescription(): Promise<void> {
  const { byDefault, openApiDocument } = await import('../http/schemas/openapi.ts');
  const { packageVersion } = await import('../package-version.ts');
  const document = openApiDocument(packageVersion(), { ...byDefault, hasAdminApi: true });
  print(`${JSON.stringify(document, null, 2)}\n`);
}

export function addOpenApi(program: Command): void {
  addCommand(program, {
    name: 'openapi',
    summary: 'print the OpenAPI description, that of the admin API included',
    example: 'model-gateway openapi > openapi.json',
  }).action(printDescription);
}

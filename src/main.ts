#!/usr/bin/env node
import { whyTooOld } from './node-version.ts';

const problem = whyTooOld(process.versions.node);
if (problem === null) {
  // Only now: what they import may not be there in an older Node.
  const { forgetPostgresVariables } = await import('./settings.ts');
  const { runCommand } = await import('./commands/program.ts');
  forgetPostgresVariables();
  process.exitCode = await runCommand(process.argv.slice(2));
} else {
  process.stderr.write(`model-gateway: ${problem}\n`);
  process.exitCode = 1;
}
// Nothing is left to do; what a library keeps open must not keep the process.
process.exit();
